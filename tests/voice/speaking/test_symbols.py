"""Numbers and symbols are written as words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.text_normalizer import expand_symbols


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It is 5% more.", "It is 5 percent more."),
        ("About $1,200,000 in all", "About 1200000 dollars in all"),
        ("$1 or €2.50", "1 dollar or 2.50 euros"),
        ("3 € each, $2.5M in sum", "3 euros each, 2.5 million dollars in sum"),
        ("20°C or 68 °F, turn 90°", "20 degrees Celsius or 68 degrees Fahrenheit, turn 90 degrees"),
        ("At 21:04, not 9:00", "At 21 oh 4, not 9 o'clock"),
        ("At 9:30 pm", "At 9 30 pm"),
        ("On 2026-05-01.", "On 1 May 2026."),
        ("5-10 people, 7–3 at the end", "5 to 10 people, 7 to 3 at the end"),
        ("Call 555-123", "Call 555 123"),
        ("It is -5 outside, a so-so day", "It is minus 5 outside, a so-so day"),
        ("3 + 4 = 7", "3 plus 4 equals 7"),
        ("2 * 3, x < y", "2 times 3, x less than y"),
        ("3*4=12, x <= 7, 9>=8, 1 != 2", "3 times 4 equals 12, x at most 7, 9 at least 8, 1 is not 2"),
        ("x<=7, a!=b", "x at most 7, a is not b"),
        ("Tom & Ada, R&D", "Tom and Ada, R and D"),
        ("rated 8/10, half is 1/2, open 24/7", "rated 8 out of 10, half is one half, open 24 7"),
        ("he/she", "he or she"),
        ("#1 of them", "number 1 of them"),
        ("~5 of them, ≥3", "about 5 of them, at least 3"),
        ("120 km/h, 5 km, 16GB", "120 kilometres an hour, 5 kilometres, 16 gigabytes"),
        ("1 km, 1 km/h, 1kHz, 1°C", "1 kilometre, 1 kilometre an hour, 1 kilohertz, 1 degree Celsius"),
        ("1.1 km, 21 km, 1 MB/s", "1.1 kilometres, 21 kilometres, 1 megabyte per second"),
        ("20° C, 5 m/s", "20 degrees Celsius, 5 metres per second"),
        ("20°Celsius, 38°N, 9°30'", "20 degrees Celsius, 38 degrees N, 9 degrees 30'"),
        ("Write to ada@example.org", "Write to ada at example dot org"),
        ("Fruit, e.g. apples etc. vs. bread", "Fruit, for example apples et cetera versus bread"),
        ("We have two TVs. Take both CVs.", "We have two TVs. Take both CVs."),
        ("Don't — it's Ada's, “really”!", "Don't — it's Ada's, “really”!"),
        ("left → right", "left to right"),
        ("and/or, w/ friends and w/ #2, w/o me", "and or, with friends and with number 2, without me"),
        ("See /etc/passwd and ~/notes/today", "See etc passwd and notes today"),
        ("C#, F# and C++ beside .NET", "C sharp, F sharp and C plus plus beside .NET"),
        ("$20/month, $1/day, 3 €/kg", "20 dollars per month, 1 dollar per day, 3 euros per kilogram"),
        ("100 MB/s, $2.5M/yr, red/blue", "100 megabytes per second, 2.5 million dollars per year, red or blue"),
        ("Open 8:00-10:00", "Open 8 o'clock to 10 o'clock"),
        ("9:30 am – 5:00 pm", "9 30 am to 5 pm"),
        ("8:30-10, 3:1", "8 30 to 10, 3:1"),
        ("x^2 + y^3 = z^n", "x squared plus y cubed equals z to the power of n"),
    ],
)
def test_signs_become_words(written: str, said: str) -> None:
    """Symbols are replaced by the words that a person would read aloud."""
    assert expand_symbols(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Es sind 5% oder 3,5 % mehr.", "Es sind 5 Prozent oder 3,5 Prozent mehr."),
        ("Um 21:04 Uhr, nicht um 9:00 oder 8.30 Uhr.", "Um 21 Uhr 4, nicht um 9 Uhr oder 8 Uhr 30."),
        ("20 °C, 68°F, eine Drehung um 90°", "20 Grad Celsius, 68 Grad Fahrenheit, eine Drehung um 90 Grad"),
        ("12.000 € oder €5, 3,50 €, 2,5 Mio. €", "12000 Euro oder 5 Euro, 3 Euro 50, 2,5 Millionen Euro"),
        ("9,00 € und $20", "9 Euro und 20 Dollar"),
        ("Am 3. Mai, am 03.10.2026 und 2026-05-01.", "Am dritten Mai, am dritten Oktober 2026 und ersten Mai 2026."),
        (
            "Im 20. Jahrhundert, in der 3. Liga, der 21. Mai",
            "Im zwanzigsten Jahrhundert, in der dritten Liga, der einundzwanzigste Mai",
        ),
        ("Freitag, 10. Oktober. 1. Mai. Es waren 3. Gut.", "Freitag, zehnter Oktober. erster Mai. Es waren 3. Gut."),
        (
            "Nummer 3. Ab der 7. Runde, bis zum 99. Ende, am 0. Tag",
            "Nummer 3. Ab der siebten Runde, bis zum neunundneunzigsten Ende, am nullten Tag",
        ),
        ("Die Antwort ist 4 oder 5. Genau weiß ich es nicht.", "Die Antwort ist 4 oder 5. Genau weiß ich es nicht."),
        ("Von 1 bis 10. Was meinst du? Seit 3. Versuch es.", "Von 1 bis 10. Was meinst du? Seit 3. Versuch es."),
        ("Er hat eine 2. Das ist gut. Nimm die 3. Du auch.", "Er hat eine 2. Das ist gut. Nimm die 3. Du auch."),
        ("Vom 3. bis 5. Mai, ab 1. Juni", "Vom dritten bis fünften Mai, ab ersten Juni"),
        ("Die 1. und 2. Liga, eine 2. Runde", "Die erste und zweite Liga, eine zweite Runde"),
        ("Anfang der 3. Woche, jede 2. Stunde", "Anfang der dritten Woche, jede zweite Stunde"),
        ("Ihr 5. Kind und sein 2. Versuch", "Ihr fünftes Kind und sein zweiter Versuch"),
        ("Ihr 5. Ypsilon, gab der 3. Ypsilon", "Ihr 5. Ypsilon, gab der 3. Ypsilon"),
        (
            "Am 3.5. kommt er, am 3. 5. sie, Kapitel 3.5. Ja",
            "Am dritten Mai kommt er, am dritten Mai sie, Kapitel 3.5. Ja",
        ),
        ("Während der 2. Mann sprach, mein 1. Auto", "Während der zweite Mann sprach, mein erstes Auto"),
        ("Das ist der 3. Gast, in jeder 2. Folge", "Das ist der dritte Gast, in jeder zweiten Folge"),
        ("Version 3.12 von 192.168.0.1", "Version 3.12 von 192.168.0.1"),
        ("5-10 Leute, 7–3, ein 3:1 und 555-123", "5 bis 10 Leute, 7 bis 3, ein 3 zu 1 und 555 123"),
        ("8/10, halb ist 1/2, offen 24/7", "8 von 10, halb ist ein halb, offen 24 7"),
        ("3 + 4 = 7, x^2 & y", "3 plus 4 gleich 7, x hoch 2 und y"),
        ("3*4=12, x <= 7, 9>=8, 1 != 2", "3 mal 4 gleich 12, x höchstens 7, 9 mindestens 8, 1 ungleich 2"),
        ("x<=7, a!=b", "x höchstens 7, a ungleich b"),
        ("120 km/h, 5 km, 16GB", "120 Kilometer pro Stunde, 5 Kilometer, 16 Gigabyte"),
        ("Z. B. Äpfel usw. bzw. ca. 5", "zum Beispiel Äpfel und so weiter beziehungsweise circa 5"),
        ("und/oder, er/sie, #1, ~5, -5, § 3", "und oder, er oder sie, Nummer 1, etwa 5, minus 5, Paragraf 3"),
        ("An ada@example.org", "An ada ät example Punkt org"),
        ("20 €/Monat, 3,50 €/kg, $5/Tag", "20 Euro pro Monat, 3 Euro 50 pro Kilogramm, 5 Dollar pro Tag"),
        ("100 MB/s, 5 m/s, 2 Mio. €/Jahr", "100 Megabyte pro Sekunde, 5 Meter pro Sekunde, 2 Millionen Euro pro Jahr"),
        ("5 GB/h, Euro/Dollar", "5 Gigabyte pro Stunde, Euro oder Dollar"),
        ("8:00-10:00 Uhr, 9:00 - 17:00 Uhr", "8 Uhr bis 10 Uhr, 9 Uhr bis 17 Uhr"),
        ("8.00–10.30 Uhr, 8:30 Uhr-10 Uhr", "8 Uhr bis 10 Uhr 30, 8 Uhr 30 bis 10 Uhr"),
        ("1 km, 1 ms, 20° C, 2 MB/ms", "1 Kilometer, 1 Millisekunde, 20 Grad Celsius, 2 Megabyte pro Millisekunde"),
        ("C# und C++", "C sharp und C plus plus"),
    ],
)
def test_signs_become_german_words(written: str, said: str) -> None:
    """What a German voice reads has German words, a comma in decimals and dots between thousands."""
    assert expand_symbols(written, "de") == said


@given(st.text(max_size=200), st.sampled_from(["", "de"]))
def test_no_sign_is_left(text: str, language: str) -> None:
    """The result never contains a symbol that a voice would spell, or doubled spaces."""
    said = expand_symbols(text, language)
    assert not set(said) & set("*_`~|<>{}[]^\\#=+@/&%$€£¥°\n\t")
    assert said == " ".join(said.split())
