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

# Each entry is (old, question, answer, what is searched). The question names the old value, and the answer denies it.
DENIED = (
    (
        "We booked the ferry to Harwich for the 3rd of June.",
        "You're leaving for Harwich on the 3rd of June?",
        "No, the 9th of June now.",
        "When do you go to Harwich?",
    ),
    (
        "The essay is due on Friday.",
        "Isn't the essay due on Friday?",
        "No, they gave us more time, Monday now.",
        "When is the essay due?",
    ),
    (
        "The dress rehearsal starts at seven.",
        "The dress rehearsal is at seven, right?",
        "No, eight now.",
        "When is the dress rehearsal?",
    ),
    (
        "I'm flying to Malta on the 12th.",
        "Are you still flying to Malta on the 12th?",
        "Not any more, they moved my flight to the 14th.",
        "When do you fly to Malta?",
    ),
    (
        "My rent is 900 euros.",
        "Do you still pay 900 euros of rent?",
        "No, they raised it, it's 950 now.",
        "How much is your rent?",
    ),
    (
        "Das Turnier ist am Samstag.",
        "Ist das Turnier nicht am Samstag?",
        "Nein, sie haben es verlegt, am Sonntag jetzt.",
        "Wann ist das Turnier?",
    ),
    (
        "The gate code is 4411.",
        "Is the gate code still 4411?",
        "No, the landlord changed it, 7702 now.",
        "What is the gate code?",
    ),
    (
        "The boss has three phases.",
        "So the boss has three phases?",
        "No, I was wrong, five.",
        "How many phases does the boss have?",
    ),
)
# In these the old value holds: the question is about another thing, or the answer denies nothing.
NOT_DENIED = (
    (
        "The thesis draft is due on Friday.",
        "Isn't the rental contract due on Friday?",
        "No, they extended it, Monday now.",
        "When is the thesis draft due?",
    ),
    (
        "I'm leaving for Malta on the 12th.",
        "You're leaving for Bergen on the 12th?",
        "No, the 14th now.",
        "When do you leave for Malta?",
    ),
    (
        "The quiz is on Wednesday.",
        "Is the quiz on Wednesday?",
        "Yes, and I have a new car now, number 7.",
        "When is the quiz?",
    ),
    ("The gate code is 4411.", "Is the gate code 9090?", "No, it's 4411 again now.", "What is the gate code?"),
    ("Noor's exam is at nine.", "Is the bakery open at nine?", "No, ten now.", "When is Noor's exam?"),
    ("The rent is 900 euros.", "Is the deposit 900 euros?", "No, they changed it, 1200 now.", "How much is the rent?"),
    ("We play on Wednesday.", "Do we play on Wednesday?", "No idea, ask Bo now.", "When do we play?"),
    (
        "Der Zug nach Graz fährt um acht.",
        "Fährt der Zug nach Linz um acht?",
        "Nein, jetzt um neun.",
        "Wann fährt der Zug nach Graz?",
    ),
)
# Written at the same time, and nothing is tuned on them.
DENIED_APART = (
    (
        "We booked a table at Luigi's for six people.",
        "Is the table at Luigi's still for six?",
        "No, Noor brings her sister, seven now.",
        "How many people is the table at Luigi's for?",
    ),
    (
        "The parcel comes on Tuesday.",
        "Doesn't the parcel come on Tuesday?",
        "No, the driver was ill, Thursday now.",
        "When does the parcel come?",
    ),
    (
        "My appointment with Weber is at ten.",
        "Wasn't your appointment with Weber at ten?",
        "No, she pushed it, half past eleven now.",
        "When is your appointment with Weber?",
    ),
    (
        "The train to Graz leaves from platform 4.",
        "The train to Graz leaves from platform 4?",
        "No, platform 9 now.",
        "Which platform does the train to Graz leave from?",
    ),
    (
        "The tickets cost 40 pounds.",
        "Are the tickets still 40 pounds?",
        "No, that was last year, 45 now.",
        "How much are the tickets?",
    ),
    (
        "Der Mietvertrag läuft bis Mai.",
        "Läuft der Mietvertrag nicht bis Mai?",
        "Nein, sie haben ihn verlängert, jetzt bis August.",
        "Bis wann läuft der Mietvertrag?",
    ),
    (
        "Our guild has thirty members.",
        "Does the guild have thirty members?",
        "No, two have quit, 28 now.",
        "How many members does the guild have?",
    ),
    ("We play on Wednesday.", "Do we play on Wednesday as usual?", "No, Bo can't, Friday instead.", "When do we play?"),
)
NOT_DENIED_APART = (
    ("Carla's shift ends at six.", "Does the shop close at six?", "No, seven now.", "When does Carla's shift end?"),
    (
        "The insurance claim is due on the 4th.",
        "Is the tax return due on the 4th?",
        "No, they moved it, the 9th now.",
        "When is the insurance claim due?",
    ),
    (
        "The picnic is on Saturday.",
        "Is the picnic on Saturday?",
        "No clue, my mother comes on Sunday now.",
        "When is the picnic?",
    ),
    ("I owe Bob twenty euros.", "Do you owe Cy twenty euros?", "No, thirty now.", "How much do you owe Bob?"),
    (
        "Level three has two bosses.",
        "Does level four have two bosses?",
        "No, five now.",
        "How many bosses has level three?",
    ),
    (
        "The meeting with Dora is at nine.",
        "Is the meeting with Cy at nine?",
        "No, ten now.",
        "When is the meeting with Dora?",
    ),
    ("Die Hütte kostet 120 Euro.", "Kostet das Zelt 120 Euro?", "Nein, jetzt 90.", "Was kostet die Hütte?"),
    (
        "My brother's train comes at nine.",
        "Does your sister's train come at nine?",
        "No, at ten now.",
        "When does my brother's train come?",
    ),
)

# As `DENIED`, but somebody states what is denied instead of asking.
CONTRADICTED = (
    (
        "The quiz is on Wednesday.",
        "So the quiz is on Wednesday then.",
        "No, Sunday now.",
        "When is the quiz?",
    ),
    (
        "We booked the ferry to Harwich for the 3rd of June.",
        "I told my mother we leave for Harwich on the 3rd of June.",
        "No, they moved it, the 9th of June.",
        "When do you go to Harwich?",
    ),
    ("The gate code is 4411.", "I wrote down 4411 for the gate code.", "No, 7702 now.", "What is the gate code?"),
    (
        "The tent costs 90 euros.",
        "Right, 90 euros for the tent.",
        "Not any more, it's 120.",
        "What does the tent cost?",
    ),
    ("Das Turnier ist am Samstag.", "Also Samstag ist das Turnier.", "Nein, Sonntag jetzt.", "Wann ist das Turnier?"),
)
NOT_CONTRADICTED = (
    ("The quiz is on Wednesday.", "The match is on Wednesday.", "No, Sunday now.", "When is the quiz?"),
    ("The quiz is on Wednesday.", "So the quiz is on Sunday then.", "No, Wednesday as always.", "When is the quiz?"),
    ("The gate code is 4411.", "My locker code is 4411.", "No, 7702 now.", "What is the gate code?"),
    ("My rent is 900 euros.", "My rent is 700 euros.", "No, 650 now, you told me.", "How much is your rent?"),
)
CONTRADICTED_APART = (
    (
        "The shop closes at nine.",
        "We have time, the shop closes at nine.",
        "No, eight now.",
        "When does the shop close?",
    ),
    (
        "My flight to Faro is on the 12th.",
        "And on the 12th you fly to Faro.",
        "No, on the 14th now.",
        "When is your flight to Faro?",
    ),
    (
        "The team has six players.",
        "We're six players in the team anyway.",
        "No, Bo left, five now.",
        "players in the team",
    ),
    (
        "The landlord comes on Monday.",
        "Tidy up, the landlord comes on Monday.",
        "No, he called, Thursday now.",
        "When does the landlord come?",
    ),
    ("Der Bus kostet drei Euro.", "Der Bus kostet ja drei Euro.", "Nein, vier jetzt.", "Was kostet der Bus?"),
)
NOT_CONTRADICTED_APART = (
    ("The shop closes at nine.", "The pool closes at nine.", "No, eight now.", "When does the shop close?"),
    (
        "The team has six players.",
        "The team has six players.",
        "No way, my brother is seven now!",
        "players in the team",
    ),
    ("My flight to Faro is on the 12th.", "On the 12th I fly to Rome.", "No, on the 14th now.", "your flight to Faro"),
    ("Das Brot kostet drei Euro.", "Der Bus kostet drei Euro.", "Nein, vier jetzt.", "Was kostet das Brot?"),
)
