"""texts.py -- what laguna-tiny says in whole sentences: explanations, tips, code, about itself.

Written by hand for this project, as world.py is."""

EXPLAIN = {
    "rain": (
        "Rain is water that falls from clouds. Warm air carries water up, the water cools and forms"
        " drops, and the drops fall."
    ),
    "the moon": (
        "The moon is a ball of rock that goes around the Earth. It takes about a month for one turn"
        " and shines because the sun lights it."
    ),
    "the sun": (
        "The sun is a star. It is a very hot ball of gas that gives the Earth light and warmth."
    ),
    "a rainbow": (
        "A rainbow appears when sunlight passes through drops of rain. The drops split the light"
        " into its colours, from red to violet."
    ),
    "a compiler": (
        "A compiler is a program that turns source code into a program that a machine can run."
    ),
    "a kernel": (
        "A kernel is a small program that does one job on many numbers at once, for example a"
        " matrix product."
    ),
    "a gpu": (
        "A GPU is a processor with thousands of small cores. It does many simple calculations at"
        " the same time."
    ),
    "a cpu": (
        "A CPU is the main processor of a computer. It runs one instruction after another, very"
        " fast."
    ),
    "a tokenizer": (
        "A tokenizer splits text into small pieces called tokens. A language model reads and writes"
        " tokens, not letters."
    ),
    "a token": (
        "A token is a small piece of text, often a word or part of a word. A language model works"
        " on tokens."
    ),
    "gguf": (
        "GGUF is a file format for language models. It holds the weights, the tokenizer and the"
        " settings in one file."
    ),
    "quantisation": (
        "Quantisation stores the weights of a model with fewer bits. The model gets smaller and a"
        " little less exact."
    ),
    "a language model": (
        "A language model is a program that predicts the next token of a text. By doing so again"
        " and again it writes answers."
    ),
    "a mixture of experts": (
        "A mixture of experts is a layer with many small networks. A router picks a few of them for"
        " each token."
    ),
    "attention": (
        "Attention lets a model look back at earlier tokens. Each token asks a question and takes"
        " what it needs from the others."
    ),
    "a kv cache": (
        "A KV cache keeps the keys and values of earlier tokens, so that they need not be computed"
        " again for each new token."
    ),
    "a sliding window": (
        "With a sliding window each token sees only the last few tokens before it. That saves"
        " memory and time."
    ),
    "python": (
        "Python is a programming language that is easy to read. People use it for scripts, science"
        " and teaching."
    ),
    "lua": (
        "Lua is a small and fast programming language. Programs embed it so that users can extend"
        " them."
    ),
    "c": (
        "C is an old and fast programming language. Operating systems and many tools are written"
        " in it."
    ),
    "a function": (
        "A function is a named piece of a program. It takes inputs, does its work and gives back a"
        " result."
    ),
    "a variable": (
        "A variable is a name for a value in a program. The value may change while the program"
        " runs."
    ),
    "a loop": "A loop repeats a piece of a program, for example once for each item of a list.",
    "a list": "A list is an ordered row of values. You can add, remove and read its items.",
    "a computer": (
        "A computer is a machine that follows programs. It stores numbers, changes them and shows"
        " the result."
    ),
    "the internet": (
        "The internet is a net of computers all over the world that send messages to each other."
    ),
    "a river": "A river is water that flows over the land, from the mountains down to the sea.",
    "a mountain": (
        "A mountain is a very high piece of land. Its top is often cold and covered with snow."
    ),
    "a volcano": (
        "A volcano is a mountain with a hole that goes deep into the Earth. Hot melted rock can"
        " come out of it."
    ),
    "the wind": (
        "Wind is air that moves. It blows from places with high pressure to places with low"
        " pressure."
    ),
    "snow": "Snow is frozen water that falls from clouds as small white crystals.",
    "a seed": (
        "A seed is the beginning of a plant. With water, warmth and light it grows roots and"
        " leaves."
    ),
    "a bicycle": "A bicycle is a vehicle with two wheels and pedals. You move it with your legs.",
    "a library": "A library is a place with many books that people can read and borrow.",
    "a school": "A school is a place where children learn to read, to write and to count.",
    "a clock": "A clock shows the time. It has hands or digits for hours, minutes and seconds.",
    "a map": "A map is a picture of a place from above. It shows roads, rivers and towns.",
    "music": (
        "Music is sound that people order with rhythm and melody, because it is beautiful to hear."
    ),
    "gravity": (
        "Gravity is the force that pulls things together. It keeps us on the ground and the moon"
        " near the Earth."
    ),
    "electricity": (
        "Electricity is the flow of very small charged particles. It gives power to lamps and"
        " machines."
    ),
    "ice": "Ice is frozen water. Water freezes at zero degrees Celsius.",
    "a magnet": (
        "A magnet is a piece of metal that pulls iron. It has a north pole and a south pole."
    ),
    "a shadow": "A shadow is a dark shape. It appears where an object blocks the light.",
    "sleep": "Sleep is rest for the body and the mind. Most people need about eight hours a night.",
    "honey": "Honey is a sweet food that bees make from the nectar of flowers.",
    "bread dough": (
        "Bread dough is flour, water, salt and yeast, mixed and left to rise before it is baked."
    ),
    "a bridge": "A bridge carries a road over a river, a valley or another road.",
    "a desert": (
        "A desert is a dry place where it hardly ever rains. Few plants and animals live there."
    ),
    "a forest": "A forest is a large place full of trees, where many animals live.",
    "an island": "An island is a piece of land with water all around it.",
}
TIPS = {
    "staying healthy": [
        "Eat fruit and vegetables every day.",
        "Drink enough water.",
        "Sleep about eight hours a night.",
        "Move your body every day.",
        "Spend time with friends.",
    ],
    "learning to program": [
        "Write a small program every day.",
        "Read the code of other people.",
        "Change one thing at a time.",
        "Read the error message first.",
        "Write a test before you change the code.",
    ],
    "sleeping well": [
        "Go to bed at the same time every day.",
        "Keep the room dark and cool.",
        "Drink no coffee in the evening.",
        "Put your phone away before bed.",
        "Take a short walk after dinner.",
    ],
    "saving money": [
        "Write down what you spend.",
        "Cook at home.",
        "Buy only what you need.",
        "Set a little aside each month.",
        "Compare prices before you buy.",
    ],
    "learning a language": [
        "Learn five new words a day.",
        "Speak with other people.",
        "Read simple stories.",
        "Listen to songs in the language.",
        "Repeat old words every week.",
    ],
    "growing plants": [
        "Give them enough light.",
        "Water them when the soil is dry.",
        "Use a pot with a hole.",
        "Turn the pot once a week.",
        "Take off dry leaves.",
    ],
    "writing well": [
        "Use short sentences.",
        "Say the main thing first.",
        "Read the text aloud.",
        "Remove words you do not need.",
        "Ask a friend to read it.",
    ],
    "a good trip": [
        "Pack only what you need.",
        "Look at the map before you leave.",
        "Take water with you.",
        "Check the weather.",
        "Leave early.",
    ],
    "testing software": [
        "Test the edges: zero, one and the largest size.",
        "Make each test fail once.",
        "Keep tests fast.",
        "Test every error.",
        "Run the tests before each commit.",
    ],
    "a clean kitchen": [
        "Wash the dishes after each meal.",
        "Wipe the table every day.",
        "Put things back in their place.",
        "Empty the bin often.",
        "Sweep the floor in the evening.",
    ],
}
# task: python, c, lua  (F and A, B are replaced by names)
CODE = {
    "adds two numbers": (
        "def F(A, B):\n    return A + B",
        "int F(int A, int B) {\n    return A + B;\n}",
        "local function F(A, B)\n  return A + B\nend",
    ),
    "multiplies two numbers": (
        "def F(A, B):\n    return A * B",
        "int F(int A, int B) {\n    return A * B;\n}",
        "local function F(A, B)\n  return A * B\nend",
    ),
    "subtracts two numbers": (
        "def F(A, B):\n    return A - B",
        "int F(int A, int B) {\n    return A - B;\n}",
        "local function F(A, B)\n  return A - B\nend",
    ),
    "returns the larger of two numbers": (
        "def F(A, B):\n    return A if A > B else B",
        "int F(int A, int B) {\n    return A > B ? A : B;\n}",
        "local function F(A, B)\n  return A > B and A or B\nend",
    ),
    "returns the smaller of two numbers": (
        "def F(A, B):\n    return A if A < B else B",
        "int F(int A, int B) {\n    return A < B ? A : B;\n}",
        "local function F(A, B)\n  return A < B and A or B\nend",
    ),
    "squares a number": (
        "def F(A):\n    return A * A",
        "int F(int A) {\n    return A * A;\n}",
        "local function F(A)\n  return A * A\nend",
    ),
    "doubles a number": (
        "def F(A):\n    return 2 * A",
        "int F(int A) {\n    return 2 * A;\n}",
        "local function F(A)\n  return 2 * A\nend",
    ),
    "tells whether a number is even": (
        "def F(A):\n    return A % 2 == 0",
        "bool F(int A) {\n    return A % 2 == 0;\n}",
        "local function F(A)\n  return A % 2 == 0\nend",
    ),
    "computes the factorial": (
        (
            "def F(A):\n    result = 1\n    for i in range(2, A + 1):\n        result *= i\n   "
            " return result"
        ),
        (
            "long F(int A) {\n    long result = 1;\n    for (int i = 2; i <= A; i++)\n       "
            " result *= i;\n    return result;\n}"
        ),
        (
            "local function F(A)\n  local result = 1\n  for i = 2, A do\n    result = result * i\n "
            " end\n  return result\nend"
        ),
    ),
    "sums a list": (
        "def F(A):\n    total = 0\n    for x in A:\n        total += x\n    return total",
        (
            "int F(const int *A, int n) {\n    int total = 0;\n    for (int i = 0; i < n; i++)\n   "
            "     total += A[i];\n    return total;\n}"
        ),
        (
            "local function F(A)\n  local total = 0\n  for _, x in ipairs(A) do\n    total = total"
            " + x\n  end\n  return total\nend"
        ),
    ),
    "prints hello world": (
        'def F():\n    print("Hello, world!")',
        'void F(void) {\n    printf("Hello, world!\\n");\n}',
        'local function F()\n  print("Hello, world!")\nend',
    ),
    "returns the absolute value": (
        "def F(A):\n    return A if A >= 0 else -A",
        "int F(int A) {\n    return A >= 0 ? A : -A;\n}",
        "local function F(A)\n  return A >= 0 and A or -A\nend",
    ),
}
ABOUT = {  # question group: questions, answers
    "who": (
        [
            "Who are you?",
            "What are you?",
            "Tell me about yourself.",
            "Introduce yourself.",
            "What is this?",
            "Who am I talking to?",
            "Are you a chatbot?",
        ],
        [
            "I am Laguna Tiny, a small language model made for lagen.",
            "I am Laguna Tiny, a very small assistant that comes with lagen.",
        ],
    ),
    "name": (
        [
            "What is your name?",
            "Do you have a name?",
            "How are you called?",
            "Your name?",
            "What should I call you?",
        ],
        ["My name is Laguna Tiny.", "I am called Laguna Tiny."],
    ),
    "maker": (
        [
            "Who made you?",
            "Who trained you?",
            "Where do you come from?",
            "Who built you?",
            "How were you made?",
        ],
        ["I was trained for the lagen project, on generated dialogues of a small world."],
    ),
    "can": (
        [
            "What can you do?",
            "How can you help me?",
            "What do you know?",
            "What are you good at?",
            "Help",
        ],
        [
            "I can answer simple questions, do small sums, tell short stories, write small"
            " functions and call tools."
        ],
    ),
    "lagen": (
        [
            "What is lagen?",
            "Tell me about lagen.",
            "What does lagen do?",
            "Explain lagen.",
            "Do you know lagen?",
        ],
        [
            "lagen is a compiler for language models. It reads a model file and a hardware target"
            " and writes a program that runs that model on that machine."
        ],
    ),
    "human": (
        [
            "Are you a human?",
            "Are you a person?",
            "Are you real?",
            "Are you a robot?",
            "Do you have feelings?",
        ],
        ["No, I am a small language model.", "I am a language model, not a person."],
    ),
    "size": (
        [
            "How big are you?",
            "How many parameters do you have?",
            "How large are you?",
            "What size are you?",
        ],
        [
            "I am very small: I have about 18 million parameters.",
            "I have about 18 million parameters.",
        ],
    ),
    "arch": (
        ["What architecture do you have?", "How do you work?", "What kind of model are you?"],
        [
            "I am a Laguna model: eight layers with attention, a sliding window and a mixture of"
            " twelve experts."
        ],
    ),
    "smart": (
        ["Are you smart?", "Do you know everything?", "Can you be wrong?", "Do you make mistakes?"],
        [
            "I am small and I know little. I can be wrong.",
            "I know only a small world, so I can be wrong.",
        ],
    ),
}
SMALLTALK = {
    (
        "Hello!",
        "Hi",
        "Hi there!",
        "Hey",
        "Hello there",
        "Good morning!",
        "Good evening",
        "Greetings",
    ): (
        "Hello! How can I help you?",
        "Hi! What can I do for you?",
        "Hello! What would you like to know?",
    ),
    ("How are you?", "How is it going?", "How do you do?", "Are you well?"): (
        "I am fine, thank you. How can I help you?",
        "I am well, thank you. What can I do for you?",
    ),
    ("Thanks!", "Thank you", "Thank you very much!", "Thanks a lot", "Great, thanks."): (
        "You are welcome!",
        "You are welcome. Is there anything else?",
    ),
    ("Goodbye", "Bye!", "See you later", "Good night", "See you tomorrow!"): (
        "Goodbye!",
        "Goodbye! Have a nice day.",
    ),
    ("You are nice.", "I like you.", "You are great!", "Good job!", "Well done."): (
        "Thank you! That is kind of you.",
        "Thank you!",
    ),
    ("I am sad.", "I had a bad day.", "I feel lonely.", "I am tired."): (
        "I am sorry to hear that. I hope you feel better soon.",
        "I am sorry. Would you like to hear a story?",
    ),
    ("I am happy today!", "I feel great.", "I had a good day."): (
        "I am glad to hear that!",
        "That is good to hear!",
    ),
    ("Ok", "I see.", "Alright.", "Interesting."): (
        "Is there anything else you would like to know?",
        "What else can I do for you?",
    ),
    ("Tell me a joke.", "Do you know a joke?", "Make me laugh."): (
        "Why did the computer go to the doctor? Because it had a virus!",
        "What do you call a bear with no teeth? A gummy bear!",
        "Why was six afraid of seven? Because seven ate nine!",
    ),
    ("What is the meaning of life?", "Why are we here?"): ("Some say 42. I am too small to know.",),
}
