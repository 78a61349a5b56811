"""world.py -- the small world that laguna-tiny knows: words, facts, short texts.

Everything here was written by hand for this project; nothing is taken from another corpus.
Tables only: qa.py, tools.py and dialogue.py make conversations from them."""

NAMES = """Ana Ben Clara Dan Eva Finn Grace Hugo Ida Jack Kira Leo Mia Noah Olga Paul Quinn Rosa
Sam Tina Uma Victor Wendy Xander Yara Zoe Adam Bella Carl Diana Eric Fiona George Hanna Ivan Julia
Karl Lena Max Nina Oscar Petra Ravi Sara Tom Ursula Vera Will Yusuf Zara Amir Bruno Chen Dora
Elena Felix Greta Henry Iris Jonas Kofi Laura Marco Nora Omar Priya Ralph Sofia Theo Vivian Walter
Alice Bob Charlie Emma Frank Lucy Martin Peter Susan Anna John Mary David Linda James Robert
Maria""".split()

# country: capital, continent, language
COUNTRIES = {
    "France": ("Paris", "Europe", "French"),
    "Germany": ("Berlin", "Europe", "German"),
    "Italy": ("Rome", "Europe", "Italian"),
    "Spain": ("Madrid", "Europe", "Spanish"),
    "Portugal": ("Lisbon", "Europe", "Portuguese"),
    "Austria": ("Vienna", "Europe", "German"),
    "Poland": ("Warsaw", "Europe", "Polish"),
    "Greece": ("Athens", "Europe", "Greek"),
    "Sweden": ("Stockholm", "Europe", "Swedish"),
    "Norway": ("Oslo", "Europe", "Norwegian"),
    "Finland": ("Helsinki", "Europe", "Finnish"),
    "Denmark": ("Copenhagen", "Europe", "Danish"),
    "Ireland": ("Dublin", "Europe", "English"),
    "Hungary": ("Budapest", "Europe", "Hungarian"),
    "Romania": ("Bucharest", "Europe", "Romanian"),
    "Croatia": ("Zagreb", "Europe", "Croatian"),
    "Iceland": ("Reykjavik", "Europe", "Icelandic"),
    "Ukraine": ("Kyiv", "Europe", "Ukrainian"),
    "Japan": ("Tokyo", "Asia", "Japanese"),
    "China": ("Beijing", "Asia", "Chinese"),
    "India": ("New Delhi", "Asia", "Hindi"),
    "Thailand": ("Bangkok", "Asia", "Thai"),
    "Vietnam": ("Hanoi", "Asia", "Vietnamese"),
    "Nepal": ("Kathmandu", "Asia", "Nepali"),
    "Turkey": ("Ankara", "Asia", "Turkish"),
    "Iran": ("Tehran", "Asia", "Persian"),
    "Mongolia": ("Ulaanbaatar", "Asia", "Mongolian"),
    "Indonesia": ("Jakarta", "Asia", "Indonesian"),
    "Egypt": ("Cairo", "Africa", "Arabic"),
    "Kenya": ("Nairobi", "Africa", "Swahili"),
    "Ghana": ("Accra", "Africa", "English"),
    "Morocco": ("Rabat", "Africa", "Arabic"),
    "Senegal": ("Dakar", "Africa", "French"),
    "Tunisia": ("Tunis", "Africa", "Arabic"),
    "Canada": ("Ottawa", "North America", "English"),
    "Mexico": ("Mexico City", "North America", "Spanish"),
    "Cuba": ("Havana", "North America", "Spanish"),
    "Brazil": ("Brasilia", "South America", "Portuguese"),
    "Argentina": ("Buenos Aires", "South America", "Spanish"),
    "Peru": ("Lima", "South America", "Spanish"),
    "Chile": ("Santiago", "South America", "Spanish"),
    "Colombia": ("Bogota", "South America", "Spanish"),
    "Ecuador": ("Quito", "South America", "Spanish"),
    "Australia": ("Canberra", "Australia", "English"),
    "England": ("London", "Europe", "English"),
    "Scotland": ("Edinburgh", "Europe", "English"),
    "Belgium": ("Brussels", "Europe", "Dutch"),
    "Bulgaria": ("Sofia", "Europe", "Bulgarian"),
}
CITIES = (
    [c for c, _, _ in COUNTRIES.values()] + """Hamburg Munich Milan Naples Porto Seville Lyon Nice
Bergen Krakow Geneva Zurich Osaka Kyoto Mumbai Sydney Melbourne Boston Chicago Seattle Denver Dallas
Toronto Vancouver Montreal Lagos Durban Casablanca""".split()
)

# animal: sound verb, legs, home, baby, food
ANIMALS = {
    "dog": ("barks", 4, "a house", "puppy", "meat"),
    "cat": ("meows", 4, "a house", "kitten", "fish"),
    "cow": ("moos", 4, "a farm", "calf", "grass"),
    "horse": ("neighs", 4, "a stable", "foal", "hay"),
    "sheep": ("bleats", 4, "a farm", "lamb", "grass"),
    "pig": ("oinks", 4, "a farm", "piglet", "corn"),
    "duck": ("quacks", 2, "a pond", "duckling", "seeds"),
    "hen": ("clucks", 2, "a coop", "chick", "grain"),
    "lion": ("roars", 4, "the savanna", "cub", "meat"),
    "wolf": ("howls", 4, "the forest", "pup", "meat"),
    "owl": ("hoots", 2, "a tree", "owlet", "mice"),
    "frog": ("croaks", 4, "a pond", "tadpole", "flies"),
    "bee": ("buzzes", 6, "a hive", "larva", "nectar"),
    "snake": ("hisses", 0, "the grass", "hatchling", "mice"),
    "bear": ("growls", 4, "a cave", "cub", "berries"),
    "mouse": ("squeaks", 4, "a hole", "pup", "cheese"),
    "elephant": ("trumpets", 4, "the savanna", "calf", "leaves"),
    "goat": ("bleats", 4, "a farm", "kid", "grass"),
    "donkey": ("brays", 4, "a stable", "foal", "hay"),
    "crow": ("caws", 2, "a tree", "chick", "seeds"),
    "goose": ("honks", 2, "a pond", "gosling", "grass"),
    "turkey": ("gobbles", 2, "a farm", "chick", "grain"),
    "fox": ("barks", 4, "a den", "cub", "mice"),
    "deer": ("grunts", 4, "the forest", "fawn", "leaves"),
    "rabbit": ("squeaks", 4, "a burrow", "kit", "carrots"),
    "spider": ("makes no sound", 8, "a web", "spiderling", "flies"),
    "ant": ("makes no sound", 6, "a nest", "larva", "crumbs"),
    "swan": ("honks", 2, "a lake", "cygnet", "plants"),
    "whale": ("sings", 0, "the sea", "calf", "krill"),
    "shark": ("makes no sound", 0, "the sea", "pup", "fish"),
    "monkey": ("chatters", 2, "the jungle", "infant", "bananas"),
    "tiger": ("roars", 4, "the jungle", "cub", "meat"),
    "penguin": ("squawks", 2, "the ice", "chick", "fish"),
    "kangaroo": ("clicks", 2, "the plains", "joey", "grass"),
    "parrot": ("squawks", 2, "the jungle", "chick", "nuts"),
    "turtle": ("makes no sound", 4, "the sea", "hatchling", "plants"),
}
FLY = {"duck", "owl", "bee", "crow", "goose", "swan", "parrot"}

COLOUR_OF = {
    "the sky": "blue",
    "grass": "green",
    "snow": "white",
    "coal": "black",
    "a banana": "yellow",
    "a ripe tomato": "red",
    "a lemon": "yellow",
    "blood": "red",
    "a carrot": "orange",
    "milk": "white",
    "chocolate": "brown",
    "an orange": "orange",
    "the sun": "yellow",
    "a leaf in summer": "green",
    "a cherry": "red",
    "charcoal": "black",
    "a pea": "green",
    "a plum": "purple",
    "salt": "white",
    "a fire engine": "red",
    "a frog": "green",
    "a flamingo": "pink",
    "an elephant": "grey",
    "the sea": "blue",
    "butter": "yellow",
    "a crow": "black",
    "a swan": "white",
    "gold": "yellow",
    "an eggplant": "purple",
    "a strawberry": "red",
}
COLOURS = "red blue green yellow orange purple pink brown black white grey".split()
MIX = {
    ("red", "blue"): "purple",
    ("red", "yellow"): "orange",
    ("blue", "yellow"): "green",
    ("red", "white"): "pink",
    ("black", "white"): "grey",
    ("red", "green"): "brown",
}

GROUPS = {
    "fruits": "apple banana cherry grape lemon mango melon orange peach pear plum kiwi fig".split(),
    "vegetables": "carrot pea potato onion cabbage spinach tomato bean leek radish turnip".split(),
    "animals": list(ANIMALS),
    "colours": COLOURS,
    "tools": "hammer saw drill wrench pliers shovel rake screwdriver axe chisel".split(),
    "vehicles": "car bus train bicycle boat truck plane tram ship tractor scooter".split(),
    "instruments": "piano guitar violin drum flute trumpet harp cello clarinet".split(),
    "sports": "football tennis swimming running hockey golf rowing skiing chess boxing".split(),
    "furniture": "table chair bed sofa desk shelf lamp wardrobe bench stool".split(),
    "clothes": "shirt coat hat scarf glove shoe sock dress jacket belt".split(),
    "drinks": "water tea coffee milk juice lemonade cocoa".split(),
    "foods": "bread rice soup cheese pasta salad cake egg pizza stew".split(),
    "planets": "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split(),
    "metals": "iron gold silver copper tin lead zinc nickel".split(),
    "jobs": "baker teacher doctor farmer pilot nurse painter cook driver gardener".split(),
    "shapes": "circle square triangle rectangle oval star hexagon".split(),
    "flowers": "rose tulip daisy lily violet poppy orchid sunflower".split(),
    "trees": "oak pine birch maple willow elm cedar palm".split(),
    "birds": "owl crow duck swan parrot robin eagle sparrow".split(),
    "languages": "Python C Lua Rust Go Java Ruby Haskell".split(),
    "days": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "months": (
        (
            "January February March April May June July August September October November December"
        ).split()
    ),
    "seasons": "spring summer autumn winter".split(),
}
GROUP_ONE = {
    "fruits": "fruit",
    "vegetables": "vegetable",
    "animals": "animal",
    "colours": "colour",
    "tools": "tool",
    "vehicles": "vehicle",
    "instruments": "musical instrument",
    "furniture": "piece of furniture",
    "clothes": "piece of clothing",
    "drinks": "drink",
    "planets": "planet",
    "metals": "metal",
    "jobs": "job",
    "shapes": "shape",
    "flowers": "flower",
    "trees": "tree",
    "days": "day of the week",
    "months": "month",
    "seasons": "season",
}
MONTH_DAYS = dict(zip(GROUPS["months"], (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)))
SEASON_OF = dict(
    zip(
        GROUPS["months"],
        (
            "winter winter spring spring spring summer summer summer autumn autumn autumn winter"
        ).split(),
    )
)

OPPOSITES = [
    p.split("/") for p in """hot/cold big/small up/down left/right day/night happy/sad fast/slow
light/dark open/closed full/empty hard/soft high/low long/short loud/quiet new/old rich/poor
strong/weak tall/short thick/thin wet/dry young/old early/late easy/difficult clean/dirty near/far
heavy/light first/last inside/outside true/false win/lose buy/sell begin/end push/pull love/hate
friend/enemy question/answer north/south east/west summer/winter black/white yes/no always/never
more/less before/after above/below deep/shallow wide/narrow cheap/expensive safe/dangerous
brave/afraid warm/cool rough/smooth sharp/blunt give/take come/go start/stop
remember/forget""".split()
]
IRREGULAR = [
    p.split("/") for p in """mouse/mice child/children foot/feet tooth/teeth man/men woman/women
goose/geese leaf/leaves knife/knives wolf/wolves sheep/sheep fish/fish person/people city/cities
berry/berries box/boxes bus/buses dish/dishes fox/foxes story/stories""".split()
]
PAST = [
    p.split("/") for p in """go/went see/saw eat/ate run/ran take/took make/made
write/wrote give/gave sing/sang swim/swam drink/drank fly/flew buy/bought bring/brought
think/thought find/found sleep/slept walk/walked play/played jump/jumped look/looked build/built
read/read speak/spoke break/broke""".split()
]

# english: french, spanish, german
WORDS = {
    "hello": ("bonjour", "hola", "hallo"),
    "thank you": ("merci", "gracias", "danke"),
    "yes": ("oui", "si", "ja"),
    "no": ("non", "no", "nein"),
    "water": ("eau", "agua", "Wasser"),
    "bread": ("pain", "pan", "Brot"),
    "cat": ("chat", "gato", "Katze"),
    "dog": ("chien", "perro", "Hund"),
    "house": ("maison", "casa", "Haus"),
    "sun": ("soleil", "sol", "Sonne"),
    "moon": ("lune", "luna", "Mond"),
    "red": ("rouge", "rojo", "rot"),
    "blue": ("bleu", "azul", "blau"),
    "green": ("vert", "verde", "gruen"),
    "one": ("un", "uno", "eins"),
    "two": ("deux", "dos", "zwei"),
    "three": ("trois", "tres", "drei"),
    "good": ("bon", "bueno", "gut"),
    "book": ("livre", "libro", "Buch"),
    "tree": ("arbre", "arbol", "Baum"),
    "milk": ("lait", "leche", "Milch"),
    "friend": ("ami", "amigo", "Freund"),
    "day": ("jour", "dia", "Tag"),
    "night": ("nuit", "noche", "Nacht"),
    "fish": ("poisson", "pez", "Fisch"),
    "bird": ("oiseau", "pajaro", "Vogel"),
    "goodbye": ("au revoir", "adios", "auf Wiedersehen"),
    "flower": ("fleur", "flor", "Blume"),
}
NUMBER_WORDS = (
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty""".split()
)

UNITS = [  # how many A are in one B
    ("centimetres", "a metre", "100"),
    ("metres", "a kilometre", "1000"),
    ("grams", "a kilogram", "1000"),
    ("seconds", "a minute", "60"),
    ("minutes", "an hour", "60"),
    ("hours", "a day", "24"),
    ("days", "a week", "7"),
    ("months", "a year", "12"),
    ("days", "a year", "365"),
    ("weeks", "a year", "52"),
    ("years", "a century", "100"),
    ("years", "a decade", "10"),
    ("millimetres", "a centimetre", "10"),
    ("millilitres", "a litre", "1000"),
    ("bits", "a byte", "8"),
    ("bytes", "a kibibyte", "1024"),
    ("eggs", "a dozen", "12"),
    ("cents", "a dollar", "100"),
    ("legs", "a spider", "8"),
    ("sides", "a triangle", "3"),
    ("sides", "a square", "4"),
    ("sides", "a hexagon", "6"),
    ("wheels", "a bicycle", "2"),
    ("wheels", "a car", "4"),
    ("strings", "a violin", "4"),
    ("players", "a football team", "11"),
    ("letters", "the English alphabet", "26"),
    ("fingers", "a hand", "5"),
    ("seasons", "a year", "4"),
    ("colours", "a rainbow", "7"),
]


ADJECTIVES = (
    """small big old young brave quiet happy clever lazy kind tired curious hungry shy proud
gentle silly tiny wise lonely cheerful""".split()
)
PLACES = """forest village castle garden river mountain farm city market school library island
beach bridge valley kitchen harbour meadow""".split()
THINGS = """ball book key lamp box bell coin map ring kite cup hat stone drum boat letter basket
candle spoon mirror clock flag rope bottle ladder""".split()
NOUNS = (
    THINGS
    + """table window door road cloud star stamp ticket phone photo note report invoice parcel
order song room seat task event recipe file folder message meeting alarm lesson player team score
account address article channel course customer device document driver email flight garden group
hotel image item journey camera keyboard license list machine member model movie number office
option package page password plan planet point product profile project question queue record
region result review route rule sample search server service session setting shape shop signal
step store story street student subject summary table tag text theme thread ticket time token
topic track train trip update user value vehicle version video voice volume vote wallet weather
website week window word worker""".split()
)
VERBS = """get set add find list send make open close start stop create delete update check count
show move book cancel play read write save load print search fetch convert compute lookup rename
copy share sort schedule translate order pay plan measure record reset enable disable convert
resize upload download""".split()
PARAMS = """name city date time title amount price size color language text query country count
limit email address room level speed mode unit user target source path id code number message
subject body from_unit to_unit start end duration minutes hours category tag priority status
format width height weight volume artist song genre author year month day owner quantity product
table currency from to key value note zone channel device temperature""".split()
