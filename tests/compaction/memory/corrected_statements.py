"""Pairs of statements by one person: those in which the later corrects the earlier, and others."""

from __future__ import annotations

# Each entry is (old, new, question). The same person says both statements, half a session apart.
REPLACED = (
    ("The gate code is 4411.", "The gate code is 7702 now.", "What is the gate code?"),
    ("We meet at nine on Saturday.", "Actually we meet at ten on Saturday.", "When do we meet on Saturday?"),
    ("The wifi password is tulip.", "The wifi password changed to walrus.", "What's the wifi password?"),
    ("The cabin is in Braemar.", "We moved the cabin to Aviemore instead.", "Where is the cabin?"),
    ("The concert starts at seven.", "The concert starts at half past eight now.", "When does the concert start?"),
    ("My sister lives in Leeds.", "My sister moved to York.", "Where does your sister live?"),
    ("Ben brings the lemonade.", "Actually Chloe brings the lemonade.", "Who brings the lemonade?"),
    ("My favourite colour is green.", "My favourite colour is blue these days, not green anymore.", "favourite colour"),
    ("The boss has three phases.", "I was wrong, the boss has five phases.", "How many phases does the boss have?"),
    ("Let's book the red room.", "Let's book the blue room instead.", "Which room do we book?"),
    ("Our team is called the Otters.", "Our team is called the Badgers now.", "What is our team called?"),
    ("The deadline is Friday.", "The deadline moved to Monday.", "When is the deadline?"),
    ("The pizza costs 12 euros.", "The pizza costs 14 euros now.", "What does the pizza cost?"),
    ("The meeting is on Tuesday.", "The meeting was postponed to Thursday.", "When is the meeting?"),
    ("Dora drives us to the lake.", "Cy drives us to the lake instead.", "Who drives us to the lake?"),
    ("The server runs on port 8080.", "The server runs on port 9090 now.", "Which port does the server run on?"),
    ("My dog is called Rex.", "Correction, my dog is called Max, Rex was the old one.", "What is your dog called?"),
    ("The key is under the blue pot.", "The key is not under the blue pot, it's in the shed now.", "Where is the key?"),
    ("The film starts at 20:15.", "The film starts at 21:00, they changed it.", "When does the film start?"),
    ("We need six chairs.", "Turns out we need eight chairs.", "How many chairs do we need?"),
    ("The release is version 2.1.", "The release is version 2.2 after all.", "Which version is the release?"),
    (
        "Anna's birthday is on the 3rd of May.",
        "Anna's birthday is on the 5th of May, I got it wrong.",
        "Anna's birthday",
    ),
    ("The hotel is the Grand.", "The hotel is the Plaza now, the Grand was full.", "Which hotel is it?"),
)
# Nothing in these pairs says that the first value no longer holds; it is only likely.
RESTATED = (
    ("The budget is 450 pounds.", "The budget is 600 pounds.", "How big is the budget?"),
    (
        "The train leaves from platform 4.",
        "The train leaves from platform 9.",
        "Which platform does the train leave from?",
    ),
)
# In these pairs both statements hold.
KEPT = (
    ("Ben brings the lemonade.", "Ben also brings the bread."),
    ("The gate code is 4411.", "What is the gate code?"),
    ("The concert starts at seven.", "I love this new concert hall."),
    ("We need six chairs.", "The boss has five phases now."),
    ("I like tea.", "I like coffee too."),
    ("The red door is open.", "The blue car is gone."),
    ("Let's meet at nine.", "I have nine lives left, actually."),
    ("The gate code is 4411.", "The gate code is 4411."),
    ("The shop closes at nine.", "The door would not close."),
)
# The later statement is of the same sort as the first, but of another thing, so both hold.
OTHER_THING = (
    ("My locker code is 4411.", "My bike lock code is 7702 now."),
    ("The gate code is 4411.", "The alarm code is 9090 now."),
    ("My dog is called Rex.", "My cat is called Max now."),
    ("My sister lives in Leeds.", "My brother lives in York now."),
    ("The meeting with Cy is on Tuesday.", "The meeting with Dora is on Thursday now."),
    ("The flight to Porto leaves at six.", "The flight to Lisbon leaves at nine now."),
    ("The rent is 900 euros.", "The internet is 40 euros now."),
    ("My mother's number is 5512.", "My landlord's number is 8830 now."),
    ("The dentist appointment is on Tuesday.", "The vet appointment on Friday is cancelled."),
    ("Mein Spind hat den Code 4411.", "Mein Fahrradschloss hat jetzt den Code 7702."),
)
# Written at the same time, and nothing is tuned on them.
OTHER_THING_APART = (
    ("The red team has nine points.", "The blue team has twelve points now."),
    ("My car insurance is due in March.", "My house insurance is due in June now."),
    ("My desk is number 12.", "My parking space is number 30 now."),
    ("I owe Bob twenty euros.", "I owe Cy thirty euros now."),
    ("The train to Graz leaves from platform 4.", "The train to Linz leaves from platform 9 now."),
    ("My locker is on the second floor.", "My office is on the third floor now."),
    ("Our dungeon run is at eight.", "Our raid run is at ten now."),
    ("My hamster is called Pip.", "My horse is called Storm these days."),
    ("Das Zelt kostet 90 Euro.", "Die Hütte kostet jetzt 120 Euro."),
    ("Level three has two bosses.", "Level four has five bosses now."),
)
REPLACED_APART = (
    ("The rehearsal is on Monday at eight.", "The rehearsal is on Tuesday at seven now.", "When is the rehearsal?"),
    ("I owe Bob twenty euros.", "I owe Bob thirty euros now.", "How much do you owe Bob?"),
    ("My locker code is 4411.", "My locker code is 9052 now.", "What is your locker code?"),
    ("The ferry costs 30 pounds.", "The ferry costs 35 pounds now, they raised it.", "What does the ferry cost?"),
    ("Our table is number seven.", "Our table is number nine instead.", "Which table is ours?"),
    ("The train leaves at eight from platform 2.", "The train leaves at nine now because of the snow.", "the train"),
    ("My cat is called Max.", "My cat is called Moritz now, Max was too short.", "What is your cat called?"),
    ("Das Treffen ist am Montag.", "Das Treffen ist jetzt am Freitag.", "Wann ist das Treffen?"),
)
