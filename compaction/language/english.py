"""English: its word lists and cues (see `language.Language`)."""

from __future__ import annotations

from snowballstemmer.english_stemmer import EnglishStemmer

from compaction.language.language import Language, number_words, value_words, word_set

ENGLISH = Language(
    code="en",
    stemmer=EnglishStemmer,
    stopwords=word_set("""
        a about sorry above actually after again ah all almost already also although always am an and another any
        anybody anyone anything are aren't around as at away back be because been before being both but by can can't
        cannot could couldn't did didn't do does doesn't doing don't done down each either else er even ever every
        everybody everyone everything few for from gonna got had hadn't has hasn't have haven't having he he'd he'll
        he's her here hers herself ha haha hahaha hey hi him himself his hm hmm how i i'd i'll i'm i've if in indeed
        instead into is isn't it it'd it'll it's its itself just kind kinda let let's like lmao lol lot lots many
        may maybe me might mine more most much must my myself neither no nobody none nor not nothing now of off oh
        ok okay on once one only onto or other our ours ourselves out over own per perhaps please pretty quite
        rather really right same she she'd she'll she's should shouldn't since so some somebody someone something
        sort still such sure than thank thanks that that'd that'll that's the their theirs them themselves then
        there there's these they they'd they'll they're they've thing things this those though through thus till to
        too totally true uh um under until up upon us very wanna was wasn't way we we'd we'll we're we've well were
        weren't what what's when where whether which while who who's whom whose why will with within without won't
        would wouldn't wow yay yeah yep yes yet you you'd you'll you're you've your yours yourself"""),
    light=word_set("""
        came come comes get gets getting go goes going gone know made make makes mean put said saw say says see seem
        seems take think try want wants went"""),
    numbers=number_words("""
        0 zero nought 1 one first 2 two second twice 3 three third 4 four fourth 5 five fifth 6 six sixth 7 seven
        seventh 8 eight eighth 9 nine ninth 10 ten tenth tenner 11 eleven eleventh 12 twelve twelfth dozen 13
        thirteen thirteenth 14 fourteen fourteenth 15 fifteen fifteenth 16 sixteen sixteenth 17 seventeen
        seventeenth 18 eighteen eighteenth 19 nineteen nineteenth 20 twenty twentieth 30 thirty thirtieth 40 forty
        fortieth 50 fifty fiftieth 60 sixty sixtieth 70 seventy seventieth 80 eighty eightieth 90 ninety ninetieth
        100 hundred hundredth 1000 thousand 1000000 million"""),
    named_values=value_words("""
        monday tuesday wednesday thursday friday saturday sunday mondays=monday tuesdays=tuesday wednesdays=wednesday
        thursdays=thursday fridays=friday saturdays=saturday sundays=sunday january february march april may june july
        august september october november december noon=12:00 midday=12:00 midnight=0:00 tomorrow tonight"""),
    ambiguous=word_set("may march august will mark second"),
    times=value_words("""
        day week month year weekend last next in ago a=1 an=1 one=1 yesterday=-1 tomorrow=+1 day_after_tomorrow=+2
        day_before_yesterday=-2 spring summer autumn fall=autumn winter"""),
    fillers=word_set("um umm uh uhh erm okay ok oh ah hey and but anyway"),
    openers=word_set("er sorry so well right listen look yeah yes hello hi like guys folks everybody everyone alright"),
    joints=word_set("and but so because then while although unless plus or"),
    thoughts=word_set("think know believe want mind forget worry care need wait agree sure hope"),
    cues={
        "negations": """
            not no never nobody none nothing neither nor without cannot can't couldn't don't doesn't didn't won't
            wouldn't isn't aren't wasn't weren't haven't hasn't hadn't shouldn't mustn't ain't against rather_not
            no_longer refuse""",
        "supposing": "if unless whether in_case as_long_as so_long_as on_condition provided_that",
        "limiting": "or either otherwise until till when whenever once as_soon_as provided providing assuming except",
        "own": "i i'm i've i'd i'll my mine me myself",
        "group": "we we're we've we'll we'd us our ours let's",
        "being": "i'm we're",
        "echoing": "mine same_here me_too so_do_i so_am_i neither_do_i",
        "asking": """
            who who's whose where where's why how how's what_is what's what_was what_are what_do what_does what_did
            what_should what_would what_time what_kind what_about when_is when's when_are when_do when_does when_did
            when_will which_one do_you do_we do_i does_anyone does_anybody does_it did_you did_we did_anyone is_it
            is_there is_that is_he is_she are_you are_we are_there can_you can_we can_i can_somebody can_someone
            could_you could_we will_you would_you should_we should_i shall_we has_anyone has_anybody have_you
            have_we was_it was_that""",
        "changing": """
            actually any_more anymore change correction wait_no no_longer longer_than not_any_more after_all instead
            again_now now switch swap scratch_that scrap_that forget_that on_second_thought on_second_thoughts
            second_thoughts i_meant make_that make_it turns_out turned_out these_days postpone reschedule delay
            wrong my_mistake update moved_to moved_it pushed_it changed_it pushed_to moved_back pushed_back bumped
            brought_forward used_to rather_than in_the_end became replace i_was_wrong wait_it's no_wait no_it's
            no_it no_the no_they no_that's no_we over_now up_again off_again back_again again""",
        "ending": """
            cancel cancelled called_off is_off is_over is_gone quit gave_up given_up stopped sold lost dropped_out
            broke_up is_out fell_through out_of_the_question""",
        "lasting": """
            wife husband partner sister brother half_brother half_sister mother father mum mom dad parents
            grandmother grandfather grandma granddad son daughter kid kids child children cousin aunt uncle niece
            nephew flatmate roommate girlfriend boyfriend fiance dog cat pet landlord boss job birthday surgery
            operation hospital doctor diagnosed allergic allergy intolerant diabetic insulin asthma pregnant vegan
            vegetarian broke sprained wrist knee live grew_up born moved moving work_at work_as work_in studies
            study degree school speak married divorced engaged religion witness afraid scared favourite favorite
            hate love can't_stand eat drink smoke name named called_me years_old owe own kit phobia blind deaf""",
        "secrets": """
            password code pin locker address phone_number number's passport key keys call_me name_is is_called
            allergic allergy owe owes lent borrowed hospital birthday insulin surgery""",
        "deciding": """
            decide agree promise plan book reserve deadline due schedule settled chose choose pick vote must have_to
            need_to need remind remember don't_forget let's_do let's_meet let's_take let's_go_to we'll i'll you'll
            going_to meet appointment tomorrow tonight next_week next_month next_year confirm responsible in_charge
            takes_care_of bring fly travel start leave we_go deal costs price paid buy bought sell rule""",
        "doing": """
            playing watching looking_at working_on reading building cooking drawing game film movie episode level
            match round boss_fight stream quest map project screen""",
        "unsettled": """
            not_sure undecided don't_know still_need still_have_to still_waiting still_open find_out figure_out
            ask_him ask_her ask_them remains_open haven't_decided haven't_heard waiting_for could_you can_you""",
        "passing": """
            hold_on hang_on one_sec one_second one_moment one_minute a_sec a_second a_moment brb be_right_back
            right_back back_in_a nice_one nice_shot nice_try good_one good_job good_game good_luck well_played
            bless_you muted mute mic microphone headset lag lagging ping loading reload echo breaking_up hear_me
            hear_you doorbell pee toilet bathroom oh_my_god can't_even never_mind no_idea sounds_good you_wish
            so_good so_full hello hi congrats haha lol typing on_the_keyboard tea's another_beer my_chair this_chair
            squeaks raining weather let_me_just say_that_again where_were_we what_was_that totally she_said
            always_say so_bad so_loud stop new_mic your_mic hungry tired sleepy starving""",
        "references": """
            it it's that that's this those these them he he's she she's they they're there yes yeah no nope yep
            same_here exactly both neither either then""",
        "reporting": """
            you_said he_said she_said they_said has_said have_said said_that told_us told_me told_you mentioned
            just_now earlier_in on_a_screen according_to minutes_ago minute_ago asked""",
    },
    said="said",
    talked_about="They talked about {}.",
    conjunction="and",
)
