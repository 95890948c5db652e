"""German: its word lists and cues (see `language.Language`)."""

from __future__ import annotations

from snowballstemmer.german_stemmer import GermanStemmer

from compaction.language.language import Language, number_words, value_words, word_set

GERMAN = Language(
    code="de",
    stemmer=GermanStemmer,
    stopwords=word_set("""
        aber ach äh ähm alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin
        bis bist bisschen da dabei dafür dagegen damit danach dann daran darauf darin darum das dass davon dazu dein
        deine deinen deiner dem den denn der des dessen deshalb dich die dies diese diesem diesen dieser dieses dir
        doch dort drauf du durch eben echt eh ein eine einem einen einer eines einfach einmal er erst es etwas euch
        euer eure eurem euren für ganz gar gegen genau gerade gern gibt habe haben habt hast hat hatte hatten
        hättest hätte her hey hier hin hm ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins irgendwas
        irgendwie ist ja jede jedem jeden jeder jedes jemand jene jetzt kann kannst kein keine keinem keinen keiner
        könnte könnten können könnt lieber mal man mein meine meinem meinen meiner mich mir mit muss musst müssen na
        nach nee nein nicht nichts nie niemand noch nun nur ob oder oh ohne okay ok paar schon sehr sei sein seine
        seinem seinen seiner seit selbst sich sie sind so sogar soll sollen sollte sollten sondern sonst soviel
        übrigens um und uns unser unsere unserem unseren unter viel viele vielleicht vom von vor wann war waren
        warst warum was weil welche welcher welches wem wen wenig wenn wer werde werden wessen wie wieder will
        willst wir wird wirst wo wohl wollen wollte worden wurde wurden würde würden zu zum zur zwar zwischen über"""),
    light=word_set("""
        geht gehen gehst ging gemacht gesagt geworden komme kommen kommst kommt kam mache machen macht nehme nehmen
        nimmt sage sagen sagt sagte sehe sehen sieht glaube glauben denke denken erinnerst meine weiß weißt wissen tun
        tut"""),
    numbers=number_words(
        """
        0 null 1 ein eins erste ersten erster erstes 2 zwei zweite zweiten zweimal 3 drei dritte dritten 4 vier
        vierte vierten 5 fünf fünfte fünften 6 sechs sechste sechsten 7 sieben siebte siebten 8 acht achte achten 9
        neun neunte neunten 10 zehn zehnte zehnten zehner 11 elf elfte elften 12 zwölf zwölfte zwölften dutzend 13
        dreizehn 14 vierzehn 15 fünfzehn 16 sechzehn 17 siebzehn 18 achtzehn 19 neunzehn 20 zwanzig zwanzigste
        zwanzigsten 30 dreißig 40 vierzig 50 fünfzig 60 sechzig 70 siebzig 80 achtzig 90 neunzig 100
        hundert 1000 tausend 1000000 million millionen""",
        joint="und",
    ),
    named_values=value_words("""
        montag dienstag mittwoch donnerstag freitag samstag sonnabend=samstag sonntag montags=montag
        dienstags=dienstag mittwochs=mittwoch donnerstags=donnerstag freitags=freitag samstags=samstag
        sonntags=sonntag januar jänner=januar februar märz april mai juni juli august september oktober november
        dezember mittags mitternacht=0:00 morgen übermorgen"""),
    ambiguous=word_set(""),
    times=value_words("""
        tag=day woche=week monat=month jahr=year wochenende=weekend letzte=last vorige=last nächste=next in vor=before
        ein=1 gestern=-1 morgen=+1 übermorgen=+2 vorgestern=-2 frühling=spring frühjahr=spring sommer=summer
        herbst=autumn winter"""),
    fillers=word_set("äh ähm öh hm okay ok oh ach hey und aber naja"),
    openers=word_set("also so ja gut hört hallo leute übrigens moment tja"),
    joints=word_set("und aber weil dann während obwohl oder denn sonst"),
    thoughts=word_set("glaube denke weiß will wolle"),
    cues={
        "negations": """
            nein nee nicht kein keine keinen keinem keiner keines nie niemals niemand nichts nirgends weder ohne
            lieber_nicht nicht_mehr kaum""",
        "supposing": "wenn falls ob sofern solange es_sei_denn unter_der_bedingung unter_der_voraussetzung",
        "limiting": "oder entweder sonst ansonsten andernfalls bis sobald denn vorausgesetzt angenommen außer",
        "own": "ich mein meine meinem meinen meiner meins mir mich",
        "group": "wir uns unser unsere unserem unseren lass_uns",
        "being": "ich_bin wir_sind",
        "echoing": "meiner meins ich_auch mir_auch ich_auch_nicht bei_mir",
        "asking": """
            wer wessen wem wen wo woher wohin warum wieso weshalb wie wann was_ist was_war was_machen was_macht
            was_hast was_sollen was_kostet welche welcher welches hast_du habt_ihr hat_jemand hat_wer kannst_du
            könnt_ihr können_wir kann_jemand kann_ich bist_du seid_ihr ist_das ist_es ist_da gibt_es sollen_wir
            soll_ich willst_du wollt_ihr wollen_wir weißt_du weiß_jemand machst_du kommst_du kommt_ihr darf_ich
            müssen_wir""",
        "changing": """
            doch_nicht doch_nur doch_lieber stattdessen statt eigentlich nicht_mehr mittlerweile inzwischen jetzt
            wieder verschoben verschieben geändert ändern korrektur vergiss_das falsch mein_fehler ich_meinte
            anders_überlegt umentschieden vertan verlegt vorverlegt umgezogen neuerdings ersetzt gewechselt tauschen
            getauscht im_endeffekt doch moment_nein quatsch ach_nein nee_warte""",
        "ending": """
            abgesagt abblasen fällt_aus ausgefallen vorbei aufgehört aufgegeben gekündigt verkauft verloren getrennt
            abgesprungen geplatzt fällt_flach""",
        "lasting": """
            frau mann partner schwester bruder halbbruder halbschwester mutter vater mama papa eltern oma opa großmutter
            großvater sohn tochter kind cousin tante onkel nichte neffe mitbewohner freundin verlobte hund katze
            haustier vermieter chef chefin job stelle geburtstag operation op krankenhaus arzt allergisch allergie
            unverträglich laktoseintolerant zuckerkrank diabetes insulin asthma schwanger vegan vegetarier gebrochen
            verstaucht handgelenk knie wohne lebe aufgewachsen geboren ziehe umziehen arbeite studiere studiert lerne
            schule spreche verheiratet geschieden religion angst lieblingsessen lieblings hasse liebe esse trinke rauche
            heiße nenn jahre_alt schulde besitze zeuge blind taub""",
        "secrets": """
            passwort kennwort code pin zahlencode schließfach adresse telefonnummer pass schlüssel nenn_mich heißt
            allergisch allergie schulde schuldet geliehen krankenhaus geburtstag insulin operation""",
        "deciding": """
            entschieden entscheiden beschlossen einig abgemacht versprochen verspreche plan geplant buchen gebucht
            reservieren reserviert frist fällig termin gewählt wählen abgestimmt muss müssen brauche brauchen
            denk_dran nicht_vergessen treffen treffe treffpunkt morgen nächste_woche nächsten_monat nächstes_jahr
            bestätigt zuständig verantwortlich kümmere bringe mitbringen bringt fliege fliegen fahre fahren reisen
            anfangen fängt_an beginnt losfahren kostet preis bezahlt kaufe kaufen gekauft verkaufe regel ich_rufe""",
        "doing": """
            spielen spiele gucken schauen arbeiten_an lesen bauen kochen zeichnen spiel film folge serie level runde
            endgegner stream quest karte projekt bildschirm""",
        "unsettled": """
            nicht_sicher unentschieden weiß_nicht unklar noch_offen herausfinden rausfinden klären
            noch_nicht_entschieden warte_auf warten_auf frag_ihn frag_sie kannst_du könntest_du""",
        "passing": """
            moment_mal sekunde momentchen warte_mal bin_gleich gleich_wieder gleich_zurück gut_gespielt
            schöner_schuss gesundheit stumm stummgeschaltet mikro mikrofon headset ruckelt lag ping lädt neu_laden
            echo abgehackt hört_ihr hörst_du hören_mich klingel türklingel pinkeln klo toilette oh_gott ach_du
            keine_ahnung klingt_gut von_mir_aus vergiss_es so_gut so_satt hallo hi moin haha lustig witzig lache
            lachen gähne tippt auf_der_tastatur mein_tee noch_ein_bier mein_stuhl regnet wetter lass_mich_kurz
            nochmal_bitte wo_waren was_war_das total typisch hunger müde viel_glück hör_auf""",
        "references": """
            es das dies diese dieser ihn sie er dort da ja nein nee doch genau beide ebenso dann dito ich_auch""",
        "reporting": """
            du_sagtest hat_gesagt haben_gesagt hat_erzählt hat_erwähnt gerade_eben vorhin auf_dem_bildschirm laut
            minuten_sagte minute_sagte auf_einem_bildschirm gefragt""",
    },
    said="sagte",
    talked_about="Es ging um {}.",
    conjunction="und",
    capital_nouns=True,
    negation_follows=True,
)
