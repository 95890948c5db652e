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
