"""world.py -- the small world that laguna-tiny knows: words, facts, short texts.

Everything here was written by hand for this project; nothing is taken from another corpus.
Tables only: qa.py, tools.py and dialogue.py make conversations from them."""

NAMES = """Ana Ben Clara Dan Eva Finn Grace Hugo Ida Jack Kira Leo Mia Noah Olga Paul Quinn Rosa Sam Tina
Uma Victor Wendy Xander Yara Zoe Adam Bella Carl Diana Eric Fiona George Hanna Ivan Julia Karl Lena Max
Nina Oscar Petra Ravi Sara Tom Ursula Vera Will Yusuf Zara Amir Bruno Chen Dora Elena Felix Greta Henry
Iris Jonas Kofi Laura Marco Nora Omar Priya Ralph Sofia Theo Vivian Walter Alice Bob Charlie Emma Frank
Lucy Martin Peter Susan Anna John Mary David Linda James Robert Maria""".split()

# country: capital, continent, language
COUNTRIES = {
    "France": ("Paris", "Europe", "French"), "Germany": ("Berlin", "Europe", "German"),
    "Italy": ("Rome", "Europe", "Italian"), "Spain": ("Madrid", "Europe", "Spanish"),
    "Portugal": ("Lisbon", "Europe", "Portuguese"), "Austria": ("Vienna", "Europe", "German"),
    "Poland": ("Warsaw", "Europe", "Polish"), "Greece": ("Athens", "Europe", "Greek"),
    "Sweden": ("Stockholm", "Europe", "Swedish"), "Norway": ("Oslo", "Europe", "Norwegian"),
    "Finland": ("Helsinki", "Europe", "Finnish"), "Denmark": ("Copenhagen", "Europe", "Danish"),
    "Ireland": ("Dublin", "Europe", "English"), "Hungary": ("Budapest", "Europe", "Hungarian"),
    "Romania": ("Bucharest", "Europe", "Romanian"), "Croatia": ("Zagreb", "Europe", "Croatian"),
    "Iceland": ("Reykjavik", "Europe", "Icelandic"), "Ukraine": ("Kyiv", "Europe", "Ukrainian"),
    "Japan": ("Tokyo", "Asia", "Japanese"), "China": ("Beijing", "Asia", "Chinese"),
    "India": ("New Delhi", "Asia", "Hindi"), "Thailand": ("Bangkok", "Asia", "Thai"),
    "Vietnam": ("Hanoi", "Asia", "Vietnamese"), "Nepal": ("Kathmandu", "Asia", "Nepali"),
    "Turkey": ("Ankara", "Asia", "Turkish"), "Iran": ("Tehran", "Asia", "Persian"),
    "Mongolia": ("Ulaanbaatar", "Asia", "Mongolian"), "Indonesia": ("Jakarta", "Asia", "Indonesian"),
    "Egypt": ("Cairo", "Africa", "Arabic"), "Kenya": ("Nairobi", "Africa", "Swahili"),
    "Ghana": ("Accra", "Africa", "English"), "Morocco": ("Rabat", "Africa", "Arabic"),
    "Senegal": ("Dakar", "Africa", "French"), "Tunisia": ("Tunis", "Africa", "Arabic"),
    "Canada": ("Ottawa", "North America", "English"), "Mexico": ("Mexico City", "North America", "Spanish"),
    "Cuba": ("Havana", "North America", "Spanish"), "Brazil": ("Brasilia", "South America", "Portuguese"),
    "Argentina": ("Buenos Aires", "South America", "Spanish"), "Peru": ("Lima", "South America", "Spanish"),
    "Chile": ("Santiago", "South America", "Spanish"), "Colombia": ("Bogota", "South America", "Spanish"),
    "Ecuador": ("Quito", "South America", "Spanish"), "Australia": ("Canberra", "Australia", "English"),
    "England": ("London", "Europe", "English"), "Scotland": ("Edinburgh", "Europe", "English"),
    "Belgium": ("Brussels", "Europe", "Dutch"), "Bulgaria": ("Sofia", "Europe", "Bulgarian"),
}
CITIES = [c for c, _, _ in COUNTRIES.values()] + """Hamburg Munich Milan Naples Porto Seville Lyon Nice
Bergen Krakow Geneva Zurich Osaka Kyoto Mumbai Sydney Melbourne Boston Chicago Seattle Denver Dallas
Toronto Vancouver Montreal Lagos Durban Casablanca""".split()

# animal: sound verb, legs, home, baby, food
ANIMALS = {
    "dog": ("barks", 4, "a house", "puppy", "meat"), "cat": ("meows", 4, "a house", "kitten", "fish"),
    "cow": ("moos", 4, "a farm", "calf", "grass"), "horse": ("neighs", 4, "a stable", "foal", "hay"),
    "sheep": ("bleats", 4, "a farm", "lamb", "grass"), "pig": ("oinks", 4, "a farm", "piglet", "corn"),
    "duck": ("quacks", 2, "a pond", "duckling", "seeds"), "hen": ("clucks", 2, "a coop", "chick", "grain"),
    "lion": ("roars", 4, "the savanna", "cub", "meat"), "wolf": ("howls", 4, "the forest", "pup", "meat"),
    "owl": ("hoots", 2, "a tree", "owlet", "mice"), "frog": ("croaks", 4, "a pond", "tadpole", "flies"),
    "bee": ("buzzes", 6, "a hive", "larva", "nectar"), "snake": ("hisses", 0, "the grass", "hatchling", "mice"),
    "bear": ("growls", 4, "a cave", "cub", "berries"), "mouse": ("squeaks", 4, "a hole", "pup", "cheese"),
    "elephant": ("trumpets", 4, "the savanna", "calf", "leaves"), "goat": ("bleats", 4, "a farm", "kid", "grass"),
    "donkey": ("brays", 4, "a stable", "foal", "hay"), "crow": ("caws", 2, "a tree", "chick", "seeds"),
    "goose": ("honks", 2, "a pond", "gosling", "grass"), "turkey": ("gobbles", 2, "a farm", "chick", "grain"),
    "fox": ("barks", 4, "a den", "cub", "mice"), "deer": ("grunts", 4, "the forest", "fawn", "leaves"),
    "rabbit": ("squeaks", 4, "a burrow", "kit", "carrots"), "spider": ("makes no sound", 8, "a web", "spiderling", "flies"),
    "ant": ("makes no sound", 6, "a nest", "larva", "crumbs"), "swan": ("honks", 2, "a lake", "cygnet", "plants"),
    "whale": ("sings", 0, "the sea", "calf", "krill"), "shark": ("makes no sound", 0, "the sea", "pup", "fish"),
    "monkey": ("chatters", 2, "the jungle", "infant", "bananas"), "tiger": ("roars", 4, "the jungle", "cub", "meat"),
    "penguin": ("squawks", 2, "the ice", "chick", "fish"), "kangaroo": ("clicks", 2, "the plains", "joey", "grass"),
    "parrot": ("squawks", 2, "the jungle", "chick", "nuts"), "turtle": ("makes no sound", 4, "the sea", "hatchling", "plants"),
}
FLY = {"duck", "owl", "bee", "crow", "goose", "swan", "parrot"}

COLOUR_OF = {
    "the sky": "blue", "grass": "green", "snow": "white", "coal": "black", "a banana": "yellow",
    "a ripe tomato": "red", "a lemon": "yellow", "blood": "red", "a carrot": "orange", "milk": "white",
    "chocolate": "brown", "an orange": "orange", "the sun": "yellow", "a leaf in summer": "green",
    "a cherry": "red", "charcoal": "black", "a pea": "green", "a plum": "purple", "salt": "white",
    "a fire engine": "red", "a frog": "green", "a flamingo": "pink", "an elephant": "grey",
    "the sea": "blue", "butter": "yellow", "a crow": "black", "a swan": "white", "gold": "yellow",
    "an eggplant": "purple", "a strawberry": "red",
}
COLOURS = "red blue green yellow orange purple pink brown black white grey".split()
MIX = {("red", "blue"): "purple", ("red", "yellow"): "orange", ("blue", "yellow"): "green",
       ("red", "white"): "pink", ("black", "white"): "grey", ("red", "green"): "brown"}

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
    "months": ("January February March April May June July August September October November "
               "December").split(),
    "seasons": "spring summer autumn winter".split(),
}
GROUP_ONE = {
    "fruits": "fruit", "vegetables": "vegetable", "animals": "animal", "colours": "colour",
    "tools": "tool", "vehicles": "vehicle", "instruments": "musical instrument",
    "furniture": "piece of furniture", "clothes": "piece of clothing", "drinks": "drink",
    "planets": "planet", "metals": "metal", "jobs": "job", "shapes": "shape", "flowers": "flower",
    "trees": "tree", "days": "day of the week", "months": "month", "seasons": "season",
}
MONTH_DAYS = dict(zip(GROUPS["months"], (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)))
SEASON_OF = dict(zip(GROUPS["months"], ("winter winter spring spring spring summer summer summer "
                                         "autumn autumn autumn winter").split()))

OPPOSITES = [p.split("/") for p in """hot/cold big/small up/down left/right day/night happy/sad fast/slow
light/dark open/closed full/empty hard/soft high/low long/short loud/quiet new/old rich/poor strong/weak
tall/short thick/thin wet/dry young/old early/late easy/difficult clean/dirty near/far heavy/light
first/last inside/outside true/false win/lose buy/sell begin/end push/pull love/hate friend/enemy
question/answer north/south east/west summer/winter black/white yes/no always/never more/less
before/after above/below deep/shallow wide/narrow cheap/expensive safe/dangerous brave/afraid
warm/cool rough/smooth sharp/blunt give/take come/go start/stop remember/forget""".split()]
IRREGULAR = [p.split("/") for p in """mouse/mice child/children foot/feet tooth/teeth man/men woman/women
goose/geese leaf/leaves knife/knives wolf/wolves sheep/sheep fish/fish person/people city/cities
berry/berries box/boxes bus/buses dish/dishes fox/foxes story/stories""".split()]
PAST = [p.split("/") for p in """go/went see/saw eat/ate run/ran take/took make/made write/wrote give/gave
sing/sang swim/swam drink/drank fly/flew buy/bought bring/brought think/thought find/found sleep/slept
walk/walked play/played jump/jumped look/looked build/built read/read speak/spoke break/broke""".split()]

# english: french, spanish, german
WORDS = {
    "hello": ("bonjour", "hola", "hallo"), "thank you": ("merci", "gracias", "danke"),
    "yes": ("oui", "si", "ja"), "no": ("non", "no", "nein"), "water": ("eau", "agua", "Wasser"),
    "bread": ("pain", "pan", "Brot"), "cat": ("chat", "gato", "Katze"), "dog": ("chien", "perro", "Hund"),
    "house": ("maison", "casa", "Haus"), "sun": ("soleil", "sol", "Sonne"), "moon": ("lune", "luna", "Mond"),
    "red": ("rouge", "rojo", "rot"), "blue": ("bleu", "azul", "blau"), "green": ("vert", "verde", "gruen"),
    "one": ("un", "uno", "eins"), "two": ("deux", "dos", "zwei"), "three": ("trois", "tres", "drei"),
    "good": ("bon", "bueno", "gut"), "book": ("livre", "libro", "Buch"), "tree": ("arbre", "arbol", "Baum"),
    "milk": ("lait", "leche", "Milch"), "friend": ("ami", "amigo", "Freund"), "day": ("jour", "dia", "Tag"),
    "night": ("nuit", "noche", "Nacht"), "fish": ("poisson", "pez", "Fisch"), "bird": ("oiseau", "pajaro", "Vogel"),
    "goodbye": ("au revoir", "adios", "auf Wiedersehen"), "flower": ("fleur", "flor", "Blume"),
}
NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty""".split()

UNITS = [  # how many A are in one B
    ("centimetres", "a metre", "100"), ("metres", "a kilometre", "1000"), ("grams", "a kilogram", "1000"),
    ("seconds", "a minute", "60"), ("minutes", "an hour", "60"), ("hours", "a day", "24"),
    ("days", "a week", "7"), ("months", "a year", "12"), ("days", "a year", "365"), ("weeks", "a year", "52"),
    ("years", "a century", "100"), ("years", "a decade", "10"), ("millimetres", "a centimetre", "10"),
    ("millilitres", "a litre", "1000"), ("bits", "a byte", "8"), ("bytes", "a kibibyte", "1024"),
    ("eggs", "a dozen", "12"), ("cents", "a dollar", "100"), ("legs", "a spider", "8"),
    ("sides", "a triangle", "3"), ("sides", "a square", "4"), ("sides", "a hexagon", "6"),
    ("wheels", "a bicycle", "2"), ("wheels", "a car", "4"), ("strings", "a violin", "4"),
    ("players", "a football team", "11"), ("letters", "the English alphabet", "26"),
    ("fingers", "a hand", "5"), ("seasons", "a year", "4"), ("colours", "a rainbow", "7"),
]

EXPLAIN = {
    "rain": "Rain is water that falls from clouds. Warm air carries water up, the water cools and forms drops, and the drops fall.",
    "the moon": "The moon is a ball of rock that goes around the Earth. It takes about a month for one turn and shines because the sun lights it.",
    "the sun": "The sun is a star. It is a very hot ball of gas that gives the Earth light and warmth.",
    "a rainbow": "A rainbow appears when sunlight passes through drops of rain. The drops split the light into its colours, from red to violet.",
    "a compiler": "A compiler is a program that turns source code into a program that a machine can run.",
    "a kernel": "A kernel is a small program that does one job on many numbers at once, for example a matrix product.",
    "a gpu": "A GPU is a processor with thousands of small cores. It does many simple calculations at the same time.",
    "a cpu": "A CPU is the main processor of a computer. It runs one instruction after another, very fast.",
    "a tokenizer": "A tokenizer splits text into small pieces called tokens. A language model reads and writes tokens, not letters.",
    "a token": "A token is a small piece of text, often a word or part of a word. A language model works on tokens.",
    "gguf": "GGUF is a file format for language models. It holds the weights, the tokenizer and the settings in one file.",
    "quantisation": "Quantisation stores the weights of a model with fewer bits. The model gets smaller and a little less exact.",
    "a language model": "A language model is a program that predicts the next token of a text. By doing so again and again it writes answers.",
    "a mixture of experts": "A mixture of experts is a layer with many small networks. A router picks a few of them for each token.",
    "attention": "Attention lets a model look back at earlier tokens. Each token asks a question and takes what it needs from the others.",
    "a kv cache": "A KV cache keeps the keys and values of earlier tokens, so that they need not be computed again for each new token.",
    "a sliding window": "With a sliding window each token sees only the last few tokens before it. That saves memory and time.",
    "python": "Python is a programming language that is easy to read. People use it for scripts, science and teaching.",
    "lua": "Lua is a small and fast programming language. Programs embed it so that users can extend them.",
    "c": "C is an old and fast programming language. Operating systems and many tools are written in it.",
    "a function": "A function is a named piece of a program. It takes inputs, does its work and gives back a result.",
    "a variable": "A variable is a name for a value in a program. The value may change while the program runs.",
    "a loop": "A loop repeats a piece of a program, for example once for each item of a list.",
    "a list": "A list is an ordered row of values. You can add, remove and read its items.",
    "a computer": "A computer is a machine that follows programs. It stores numbers, changes them and shows the result.",
    "the internet": "The internet is a net of computers all over the world that send messages to each other.",
    "a river": "A river is water that flows over the land, from the mountains down to the sea.",
    "a mountain": "A mountain is a very high piece of land. Its top is often cold and covered with snow.",
    "a volcano": "A volcano is a mountain with a hole that goes deep into the Earth. Hot melted rock can come out of it.",
    "the wind": "Wind is air that moves. It blows from places with high pressure to places with low pressure.",
    "snow": "Snow is frozen water that falls from clouds as small white crystals.",
    "a seed": "A seed is the beginning of a plant. With water, warmth and light it grows roots and leaves.",
    "a bicycle": "A bicycle is a vehicle with two wheels and pedals. You move it with your legs.",
    "a library": "A library is a place with many books that people can read and borrow.",
    "a school": "A school is a place where children learn to read, to write and to count.",
    "a clock": "A clock shows the time. It has hands or digits for hours, minutes and seconds.",
    "a map": "A map is a picture of a place from above. It shows roads, rivers and towns.",
    "music": "Music is sound that people order with rhythm and melody, because it is beautiful to hear.",
    "gravity": "Gravity is the force that pulls things together. It keeps us on the ground and the moon near the Earth.",
    "electricity": "Electricity is the flow of very small charged particles. It gives power to lamps and machines.",
    "ice": "Ice is frozen water. Water freezes at zero degrees Celsius.",
    "a magnet": "A magnet is a piece of metal that pulls iron. It has a north pole and a south pole.",
    "a shadow": "A shadow is a dark shape. It appears where an object blocks the light.",
    "sleep": "Sleep is rest for the body and the mind. Most people need about eight hours a night.",
    "honey": "Honey is a sweet food that bees make from the nectar of flowers.",
    "bread dough": "Bread dough is flour, water, salt and yeast, mixed and left to rise before it is baked.",
    "a bridge": "A bridge carries a road over a river, a valley or another road.",
    "a desert": "A desert is a dry place where it hardly ever rains. Few plants and animals live there.",
    "a forest": "A forest is a large place full of trees, where many animals live.",
    "an island": "An island is a piece of land with water all around it.",
}
TIPS = {
    "staying healthy": ["Eat fruit and vegetables every day.", "Drink enough water.", "Sleep about eight hours a night.",
                        "Move your body every day.", "Spend time with friends."],
    "learning to program": ["Write a small program every day.", "Read the code of other people.", "Change one thing at a time.",
                            "Read the error message first.", "Write a test before you change the code."],
    "sleeping well": ["Go to bed at the same time every day.", "Keep the room dark and cool.", "Drink no coffee in the evening.",
                      "Put your phone away before bed.", "Take a short walk after dinner."],
    "saving money": ["Write down what you spend.", "Cook at home.", "Buy only what you need.", "Set a little aside each month.",
                     "Compare prices before you buy."],
    "learning a language": ["Learn five new words a day.", "Speak with other people.", "Read simple stories.",
                            "Listen to songs in the language.", "Repeat old words every week."],
    "growing plants": ["Give them enough light.", "Water them when the soil is dry.", "Use a pot with a hole.",
                       "Turn the pot once a week.", "Take off dry leaves."],
    "writing well": ["Use short sentences.", "Say the main thing first.", "Read the text aloud.", "Remove words you do not need.",
                     "Ask a friend to read it."],
    "a good trip": ["Pack only what you need.", "Look at the map before you leave.", "Take water with you.",
                    "Check the weather.", "Leave early."],
    "testing software": ["Test the edges: zero, one and the largest size.", "Make each test fail once.", "Keep tests fast.",
                         "Test every error.", "Run the tests before each commit."],
    "a clean kitchen": ["Wash the dishes after each meal.", "Wipe the table every day.", "Put things back in their place.",
                        "Empty the bin often.", "Sweep the floor in the evening."],
}

# task: python, c, lua  (F and A, B are replaced by names)
CODE = {
    "adds two numbers": ("def F(A, B):\n    return A + B", "int F(int A, int B) {\n    return A + B;\n}",
                         "local function F(A, B)\n  return A + B\nend"),
    "multiplies two numbers": ("def F(A, B):\n    return A * B", "int F(int A, int B) {\n    return A * B;\n}",
                               "local function F(A, B)\n  return A * B\nend"),
    "subtracts two numbers": ("def F(A, B):\n    return A - B", "int F(int A, int B) {\n    return A - B;\n}",
                              "local function F(A, B)\n  return A - B\nend"),
    "returns the larger of two numbers": (
        "def F(A, B):\n    return A if A > B else B", "int F(int A, int B) {\n    return A > B ? A : B;\n}",
        "local function F(A, B)\n  return A > B and A or B\nend"),
    "returns the smaller of two numbers": (
        "def F(A, B):\n    return A if A < B else B", "int F(int A, int B) {\n    return A < B ? A : B;\n}",
        "local function F(A, B)\n  return A < B and A or B\nend"),
    "squares a number": ("def F(A):\n    return A * A", "int F(int A) {\n    return A * A;\n}",
                         "local function F(A)\n  return A * A\nend"),
    "doubles a number": ("def F(A):\n    return 2 * A", "int F(int A) {\n    return 2 * A;\n}",
                         "local function F(A)\n  return 2 * A\nend"),
    "tells whether a number is even": (
        "def F(A):\n    return A % 2 == 0", "bool F(int A) {\n    return A % 2 == 0;\n}",
        "local function F(A)\n  return A % 2 == 0\nend"),
    "computes the factorial": (
        "def F(A):\n    result = 1\n    for i in range(2, A + 1):\n        result *= i\n    return result",
        "long F(int A) {\n    long result = 1;\n    for (int i = 2; i <= A; i++)\n        result *= i;\n    return result;\n}",
        "local function F(A)\n  local result = 1\n  for i = 2, A do\n    result = result * i\n  end\n  return result\nend"),
    "sums a list": (
        "def F(A):\n    total = 0\n    for x in A:\n        total += x\n    return total",
        "int F(const int *A, int n) {\n    int total = 0;\n    for (int i = 0; i < n; i++)\n        total += A[i];\n    return total;\n}",
        "local function F(A)\n  local total = 0\n  for _, x in ipairs(A) do\n    total = total + x\n  end\n  return total\nend"),
    "prints hello world": ('def F():\n    print("Hello, world!")', 'void F(void) {\n    printf("Hello, world!\\n");\n}',
                           'local function F()\n  print("Hello, world!")\nend'),
    "returns the absolute value": (
        "def F(A):\n    return A if A >= 0 else -A", "int F(int A) {\n    return A >= 0 ? A : -A;\n}",
        "local function F(A)\n  return A >= 0 and A or -A\nend"),
}

ABOUT = {  # question group: questions, answers
    "who": (["Who are you?", "What are you?", "Tell me about yourself.", "Introduce yourself.", "What is this?",
             "Who am I talking to?", "Are you a chatbot?"],
            ["I am Laguna Tiny, a small language model made for lagen.",
             "I am Laguna Tiny, a very small assistant that comes with lagen."]),
    "name": (["What is your name?", "Do you have a name?", "How are you called?", "Your name?", "What should I call you?"],
             ["My name is Laguna Tiny.", "I am called Laguna Tiny."]),
    "maker": (["Who made you?", "Who trained you?", "Where do you come from?", "Who built you?", "How were you made?"],
              ["I was trained for the lagen project, on generated dialogues of a small world."]),
    "can": (["What can you do?", "How can you help me?", "What do you know?", "What are you good at?", "Help"],
            ["I can answer simple questions, do small sums, tell short stories, write small functions and call tools."]),
    "lagen": (["What is lagen?", "Tell me about lagen.", "What does lagen do?", "Explain lagen.", "Do you know lagen?"],
              ["lagen is a compiler for language models. It reads a model file and a hardware target and writes a program that runs that model on that machine."]),
    "human": (["Are you a human?", "Are you a person?", "Are you real?", "Are you a robot?", "Do you have feelings?"],
              ["No, I am a small language model.", "I am a language model, not a person."]),
    "size": (["How big are you?", "How many parameters do you have?", "How large are you?", "What size are you?"],
             ["I am very small: I have about 18 million parameters.", "I have about 18 million parameters."]),
    "arch": (["What architecture do you have?", "How do you work?", "What kind of model are you?"],
             ["I am a Laguna model: eight layers with attention, a sliding window and a mixture of twelve experts."]),
    "smart": (["Are you smart?", "Do you know everything?", "Can you be wrong?", "Do you make mistakes?"],
              ["I am small and I know little. I can be wrong.", "I know only a small world, so I can be wrong."]),
}
SMALLTALK = {
    ("Hello!", "Hi", "Hi there!", "Hey", "Hello there", "Good morning!", "Good evening", "Greetings"):
        ("Hello! How can I help you?", "Hi! What can I do for you?", "Hello! What would you like to know?"),
    ("How are you?", "How is it going?", "How do you do?", "Are you well?"):
        ("I am fine, thank you. How can I help you?", "I am well, thank you. What can I do for you?"),
    ("Thanks!", "Thank you", "Thank you very much!", "Thanks a lot", "Great, thanks."):
        ("You are welcome!", "You are welcome. Is there anything else?"),
    ("Goodbye", "Bye!", "See you later", "Good night", "See you tomorrow!"):
        ("Goodbye!", "Goodbye! Have a nice day."),
    ("You are nice.", "I like you.", "You are great!", "Good job!", "Well done."):
        ("Thank you! That is kind of you.", "Thank you!"),
    ("I am sad.", "I had a bad day.", "I feel lonely.", "I am tired."):
        ("I am sorry to hear that. I hope you feel better soon.", "I am sorry. Would you like to hear a story?"),
    ("I am happy today!", "I feel great.", "I had a good day."):
        ("I am glad to hear that!", "That is good to hear!"),
    ("Ok", "I see.", "Alright.", "Interesting."):
        ("Is there anything else you would like to know?", "What else can I do for you?"),
    ("Tell me a joke.", "Do you know a joke?", "Make me laugh."):
        ("Why did the computer go to the doctor? Because it had a virus!",
         "What do you call a bear with no teeth? A gummy bear!",
         "Why was six afraid of seven? Because seven ate nine!"),
    ("What is the meaning of life?", "Why are we here?"):
        ("Some say 42. I am too small to know.",),
}

ADJECTIVES = """small big old young brave quiet happy clever lazy kind tired curious hungry shy proud gentle
silly tiny wise lonely cheerful""".split()
PLACES = """forest village castle garden river mountain farm city market school library island beach bridge
valley kitchen harbour meadow""".split()
THINGS = """ball book key lamp box bell coin map ring kite cup hat stone drum boat letter basket candle spoon
mirror clock flag rope bottle ladder""".split()
NOUNS = THINGS + """table window door road cloud star stamp ticket phone photo note report invoice parcel order
song room seat task event recipe file folder message meeting alarm lesson player team score account address
article channel course customer device document driver email flight garden group hotel image item journey
camera keyboard license list machine member model movie number office option package page password plan
planet point product profile project question queue record region result review route rule sample search
server service session setting shape shop signal step store story street student subject summary table tag
text theme thread ticket time token topic track train trip update user value vehicle version video voice
volume vote wallet weather website week window word worker""".split()
VERBS = """get set add find list send make open close start stop create delete update check count show move
book cancel play read write save load print search fetch convert compute lookup rename copy share sort
schedule translate order pay plan measure record reset enable disable convert resize upload download""".split()
PARAMS = """name city date time title amount price size color language text query country count limit email
address room level speed mode unit user target source path id code number message subject body from_unit
to_unit start end duration minutes hours category tag priority status format width height weight volume
artist song genre author year month day owner quantity product table currency from to key value note zone
channel device temperature""".split()
