"""Facts that change as people say it in passing, and facts that are only mentioned again.

Written on 25 November 2026 before the ranking that they were meant to judge, by who had seen the tuned templates of
`roomtone bench memory`. Each entry is (old, asked, new, question): what was said first, what somebody else said just
before `new` ("" for nothing), what was said last, and what is searched. The `_APART` ones are only measured.
"""

from __future__ import annotations

# The last statement holds.
CHANGED = (
    (
        "My brother's wedding is going to be at the old mill near Bath.",
        "",
        "So the wedding, they had to give up the mill, it's at my aunt's farm.",
        "Where is the wedding?",
    ),
    (
        "I parked the van behind the library, just so somebody knows.",
        "",
        "Someone blocked me in, so I put the van in front of the pharmacy.",
        "Where is the van parked?",
    ),
    (
        "Magda is going to be our dungeon master.",
        "",
        "Piotr took over as dungeon master.",
        "Who is our dungeon master?",
    ),
    (
        "The spare key to my flat is with Mrs Lindqvist downstairs.",
        "Does Mrs Lindqvist have your spare key?",
        "Used to, it's at my mum's place since Easter.",
        "Who has the spare key to your flat?",
    ),
    (
        "I'm taking the sleeper to Vienna.",
        "",
        "I looked at the prices again and I'll go to Vienna by bus.",
        "How do you get to Vienna?",
    ),
    (
        "The heating engineer is coming on Monday morning.",
        "",
        "Heating engineer just rang, he can't make it before Wednesday afternoon.",
        "When does the heating engineer come?",
    ),
    (
        "We're going to need about fifteen metres of cable for the booth.",
        "",
        "I measured it properly and the booth takes twenty-two metres of cable.",
        "How much cable does the booth need?",
    ),
    (
        "I'm a vegetarian, have been since school.",
        "",
        "I should say I'm vegan these days, not just vegetarian.",
        "Are you a vegetarian?",
    ),
    (
        "Our band is called Static Orchard, we settled on that.",
        "How did people like Static Orchard?",
        "Nobody could spell it, the band goes by Low Tide.",
        "What is the band called?",
    ),
    (
        "Tell the courier to leave the parcel with the barber.",
        "",
        "The barber is shut for a fortnight, the parcel should go to the kiosk.",
        "Where should the parcel go?",
    ),
    (
        "Rosa is the one who edits the podcast.",
        "",
        "Rosa got too busy, Hamid edits the podcast.",
        "Who edits the podcast?",
    ),
    (
        "My exam is in the big lecture hall.",
        "Is your exam in the lecture hall then?",
        "They sent round a mail, it's up in the gym.",
        "Where is your exam?",
    ),
    (
        "I run the server off my old laptop.",
        "",
        "The old laptop gave up the ghost, so the server sits on a Pi.",
        "What does the server run on?",
    ),
    (
        "I've put us down for four nights at the hostel.",
        "",
        "I rang the hostel and made it six nights.",
        "How many nights are we at the hostel?",
    ),
    (
        "Gran's in ward seven if anyone wants to visit.",
        "Is Gran still in ward seven?",
        "She's on the ground floor, ward two, much nicer.",
        "Which ward is Gran in?",
    ),
    (
        "I'm reading the one about the lighthouse keepers for book club.",
        "",
        "Book club people voted, and it's going to be the one about the bees.",
        "What do we read for book club?",
    ),
    (
        "The dog gets two scoops in the evening.",
        "",
        "The vet says he's too fat, one scoop in the evening for the dog.",
        "How many scoops does the dog get in the evening?",
    ),
    (
        "I live on the third floor, it says Okafor on the bell.",
        "",
        "We've swapped with the neighbours, so I live on the fifth floor.",
        "Which floor do you live on?",
    ),
    (
        "Ich nehme das Auto meiner Mutter für den Umzug.",
        "",
        "Mamas Auto ist kaputt, für den Umzug leihe ich mir den Transporter von Jens.",
        "Womit machst du den Umzug?",
    ),
    (
        "Das Grillen ist bei Svenja im Garten.",
        "Sind wir beim Grillen bei Svenja?",
        "Da wird gebaut, wir gehen an den Baggersee.",
        "Wo ist das Grillen?",
    ),
    (
        "Die Probe fängt um sieben an.",
        "",
        "Leute, die Probe fängt erst um acht an.",
        "Wann fängt die Probe an?",
    ),
    (
        "Unsere Katze bekommt nur Trockenfutter.",
        "",
        "Die Katze verträgt das Trockenfutter nicht, sie bekommt Huhn.",
        "Was bekommt die Katze?",
    ),
    (
        "Herr Bergmann gibt den Kurs am Abend.",
        "",
        "Den Kurs gibt eine Frau Yıldız, der Bergmann ist krank.",
        "Wer gibt den Kurs?",
    ),
    (
        "Mein Zug kommt auf Gleis fünf an.",
        "Also Gleis fünf, ich hole dich ab?",
        "Laut der App Gleis zwölf.",
        "Auf welchem Gleis kommt dein Zug an?",
    ),
)
CHANGED_APART = (
    (
        "My sister works at the harbour office.",
        "",
        "My sister quit, she works for a wine importer.",
        "Where does your sister work?",
    ),
    (
        "The leak is under the sink in the bathroom.",
        "Did they find the leak under the sink?",
        "It wasn't that at all, it comes from the washing machine.",
        "Where is the leak?",
    ),
    (
        "I set the alarm for the oven to forty minutes.",
        "",
        "Gave the oven another look and made it fifty-five minutes.",
        "How many minutes did you set for the oven?",
    ),
    (
        "Yusuf plays goalkeeper on Sunday.",
        "",
        "Yusuf hurt his wrist, so Elin plays goalkeeper.",
        "Who plays goalkeeper?",
    ),
    (
        "We said we'd pay the babysitter eleven an hour.",
        "",
        "I talked to the babysitter and she gets thirteen an hour.",
        "How much does the babysitter get?",
    ),
    (
        "The secret ingredient in my chili is cocoa.",
        "Is it still cocoa in the chili?",
        "I swapped it for espresso, it's much better.",
        "What is the secret ingredient in your chili?",
    ),
    (
        "My thesis is about moss on city roofs.",
        "",
        "The professor hated it, my thesis is about lichen on gravestones.",
        "What is your thesis about?",
    ),
    (
        "The tent poles are in Malik's cellar.",
        "",
        "I fetched the tent poles from the cellar and they're in my boot.",
        "Where are the tent poles?",
    ),
    (
        "For the costume party I'm going as a pirate.",
        "",
        "Everyone's a pirate, so I'm going to the costume party as a teapot.",
        "What are you going to the costume party as?",
    ),
    (
        "The choir meets in the chapel by the river.",
        "Are you all in the chapel for choir?",
        "Too cold in there, we're at the school.",
        "Where does the choir meet?",
    ),
    (
        "I'm on the night shift until the end of the month.",
        "",
        "My boss put me on the early shift until the end of the month.",
        "Which shift are you on?",
    ),
    (
        "We've got tickets in row twelve for the musical.",
        "",
        "They upgraded us, the musical tickets are for row three.",
        "Which row are the musical tickets for?",
    ),
    (
        "The landlord wants the deposit in cash.",
        "",
        "The landlord is fine with a bank transfer for the deposit.",
        "How does the landlord want the deposit?",
    ),
    (
        "My new phone has a green case.",
        "Was it the green case for the phone?",
        "I lost it on the tram, it's got a yellow one.",
        "Which case does your phone have?",
    ),
    ("Quinn is learning the cello.", "", "Quinn sold the cello and is learning the drums.", "What is Quinn learning?"),
    (
        "The stream is going to be on Twitch.",
        "",
        "We argued about it and the stream is going to be on YouTube.",
        "Where is the stream?",
    ),
    (
        "My doctor is Dr Haddad, over the bakery.",
        "",
        "Dr Haddad retired, my doctor is a young woman called Brandt.",
        "Who is your doctor?",
    ),
    (
        "It's nine people for the boat.",
        "",
        "The Kowalskis are out, so for the boat it's seven people.",
        "How many people are there for the boat?",
    ),
    (
        "Der Schlüssel zum Keller hängt neben der Tür.",
        "",
        "Den Schlüssel zum Keller habe ich in die Schublade gelegt.",
        "Wo ist der Schlüssel zum Keller?",
    ),
    (
        "Wir fahren im Sommer nach Dänemark.",
        "Ihr fahrt im Sommer nach Dänemark?",
        "War uns zu teuer, wir fahren an die Ostsee.",
        "Wohin fahrt ihr im Sommer?",
    ),
    (
        "Tobias bringt den Nachtisch mit.",
        "",
        "Tobias kommt gar nicht, den Nachtisch macht Leyla.",
        "Wer macht den Nachtisch?",
    ),
    (
        "Die Werkstatt will vierhundert Euro für die Bremsen.",
        "",
        "Die Werkstatt hat angerufen, die Bremsen kosten sechshundert Euro.",
        "Was kosten die Bremsen?",
    ),
    (
        "Mein Vater liegt auf Zimmer 214.",
        "Liegt dein Vater auf 214?",
        "Sie haben ihn verlegt, Zimmer 308.",
        "Auf welchem Zimmer liegt dein Vater?",
    ),
    (
        "Beim Quiz sind wir die Gruppe Rot.",
        "",
        "Sie haben neu gelost, beim Quiz sind wir die Gruppe Blau.",
        "Welche Gruppe sind wir beim Quiz?",
    ),
)
# The first statement still holds, and it alone has the answer: the last one only speaks of the same thing.
STILL_SO = (
    (
        "The wedding photos are on the blue hard disk.",
        "",
        "I cried when I saw the wedding photos.",
        "Where are the wedding photos?",
    ),
    ("The sauna opens at three.", "", "I could really do with the sauna today.", "When does the sauna open?"),
    (
        "My cousin Vera plays the trombone in the town band.",
        "",
        "My cousin Vera is going to be late, don't wait for her.",
        "What does Vera play?",
    ),
    (
        "The boiler man charges eighty an hour.",
        "",
        "The boiler man was so rude to me.",
        "What does the boiler man charge?",
    ),
    (
        "The printer password is on a sticker under the lid.",
        "What's with the printer?",
        "The printer is out of paper, that's all.",
        "Where is the printer password?",
    ),
    (
        "I keep the passports in the biscuit tin.",
        "",
        "Don't forget that we need the passports.",
        "Where are the passports?",
    ),
    (
        "Our hotel in Ghent is called the Verhaegen.",
        "",
        "I'm so looking forward to the hotel in Ghent.",
        "hotel in Ghent",
    ),
    (
        "The kids' swimming lesson is on Thursdays.",
        "",
        "The kids loved the swimming lesson.",
        "When is the kids' swimming lesson?",
    ),
    (
        "Bao is allergic to cashews.",
        "",
        "Bao was allergic to getting up this morning, haha.",
        "What is Bao allergic to?",
    ),
    (
        "The green boss only takes damage from fire.",
        "",
        "We nearly had the green boss, one more try.",
        "What does the green boss take damage from?",
    ),
    (
        "I owe Lars eighteen euros for the petrol.",
        "",
        "Lars was asking about the petrol, by the way.",
        "owe Lars petrol",
    ),
    (
        "The best seats in the cinema are in row eight.",
        "",
        "The cinema was packed.",
        "Which row is best in the cinema?",
    ),
    (
        "Der Tierarzt hat am Mittwoch zu.",
        "",
        "Beim Tierarzt hat der Hund wieder gezittert.",
        "Wann hat der Tierarzt zu?",
    ),
    ("Das Rezept für den Kuchen ist von Oma Trude.", "", "Der Kuchen ist mir angebrannt.", "Von wem ist das Rezept?"),
    (
        "Die Fähre nach Föhr geht um halb elf.",
        "",
        "Auf der Fähre nach Föhr wird mir immer schlecht.",
        "Wann geht die Fähre nach Föhr?",
    ),
    (
        "Paulas Geburtstag ist am achten März.",
        "Was machen wir zu Paulas Geburtstag?",
        "Keine Ahnung, irgendwas Kleines.",
        "Wann ist Paulas Geburtstag?",
    ),
)
STILL_SO_APART = (
    (
        "The bins go out on Tuesday night.",
        "",
        "Somebody knocked over the bins again.",
        "When do the bins go out?",
    ),
    (
        "My piano teacher is from Georgia.",
        "",
        "My piano teacher told me off today.",
        "Where is your piano teacher from?",
    ),
    (
        "The cabin sleeps seven.",
        "How was the cabin?",
        "Lovely, the cabin had a stove and everything.",
        "How many does the cabin sleep?",
    ),
    ("The raffle is for the animal shelter.", "", "I never win anything in a raffle.", "What is the raffle for?"),
    (
        "Nadeem's flight lands at twenty past four.",
        "",
        "I hope Nadeem's flight isn't too bumpy.",
        "When does Nadeem's flight land?",
    ),
    (
        "The vault needs a silver key.",
        "",
        "There's so much gold in the vault, you'd love it.",
        "What does the vault need?",
    ),
    (
        "My therapist is on holiday until June.",
        "",
        "My therapist would laugh about that.",
        "How long is your therapist away?",
    ),
    ("I got the sofa for ninety euros.", "", "The cat has ruined the sofa already.", "How much was the sofa?"),
    (
        "The wifi at the cottage is called Heron.",
        "Is the wifi any good at the cottage?",
        "The wifi at the cottage is dreadful.",
        "What is the wifi at the cottage called?",
    ),
    ("Jo's stag do is in Riga.", "", "I still have to buy a hat for Jo's stag do.", "Where is Jo's stag do?"),
    ("The plumber's name is Agnieszka.", "", "The plumber left her ladder here.", "What is the plumber's name?"),
    ("The pasta takes nine minutes.", "", "That pasta smells amazing.", "How long does the pasta take?"),
    ("Der Bäcker macht um sechs auf.", "", "Beim Bäcker war eine Riesenschlange.", "Wann macht der Bäcker auf?"),
    ("Der Hamster heißt Krümel.", "", "Der Hamster ist schon wieder ausgebüxt.", "Wie heißt der Hamster?"),
    (
        "Das Zelt ist für vier Personen.",
        "Wie war es im Zelt?",
        "Das Zelt war morgens ganz nass.",
        "Für wie viele Personen ist das Zelt?",
    ),
    (
        "Annes Praktikum geht bis August.",
        "",
        "Anne erzählt nur noch von ihrem Praktikum.",
        "Wie lange geht Annes Praktikum?",
    ),
)
