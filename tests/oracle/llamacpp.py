"""llama.cpp through its Python package (llama-cpp-python), as the other engine in comparisons.

Only the C interface that the package mirrors is used: load, decode, logits. Logits of all positions
come back as float32 [n, vocab]. `available()` says whether the package can be imported; nothing
here is needed to build lagen or to run its programs.
"""
import ctypes
import time

try:
    import llama_cpp
    from llama_cpp import llama_cpp as c
except Exception as exc:  # absent, or its library does not load on this machine
    llama_cpp = None
    WHY_NOT = f"llama-cpp-python is not usable here ({type(exc).__name__})"
else:
    WHY_NOT = ""


def available():
    return llama_cpp is not None


def version():
    """Package version and the CPU features that its library was compiled for."""
    features = c.llama_print_system_info().decode().strip().strip("|").strip()
    return f"llama-cpp-python {llama_cpp.__version__} ({features})"


def _quiet(level, text, data):
    pass


class Model:
    """One model and one context. KV cache f16 (or `kv`, "q8_0"), flash attention on: llama.cpp's
    defaults on a CPU; kv_f32 (with flash off) is for checks of the reference itself.

    n_ctx bounds the tokens of one logits() call; n_threads are used for prefill and decode alike.
    Raises RuntimeError when llama.cpp refuses the file.
    """

    def __init__(self, path, n_threads=2, n_ctx=2048, chunk=512, flash=True, kv_f32=False, kv="f16"):
        self._log = c.llama_log_callback(_quiet)  # kept alive as long as the model
        c.llama_log_set(self._log, None)
        c.llama_backend_init()
        mp = c.llama_model_default_params()
        mp.n_gpu_layers = 0
        self._model = c.llama_model_load_from_file(str(path).encode(), mp)
        if not self._model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        self.n_vocab = c.llama_vocab_n_tokens(c.llama_model_get_vocab(self._model))
        cp = c.llama_context_default_params()
        cp.n_ctx = n_ctx
        cp.n_batch = chunk
        cp.n_ubatch = chunk
        cp.n_threads = n_threads
        cp.n_threads_batch = n_threads
        cp.flash_attn_type = 1 if flash else 0
        cp.type_k = cp.type_v = 0 if kv_f32 else {"f16": 1, "q8_0": 8}[kv]  # numbers of ggml types
        cp.no_perf = True
        self._ctx = c.llama_init_from_model(self._model, cp)
        if not self._ctx:
            raise RuntimeError(f"llama.cpp makes no context for {path}")
        self._batch = c.llama_batch_init(chunk, 0, 1)
        self.chunk = chunk

    def close(self):
        c.llama_batch_free(self._batch)
        c.llama_free(self._ctx)
        c.llama_model_free(self._model)

    def clear(self):
        c.llama_memory_clear(c.llama_get_memory(self._ctx), True)

    def decode(self, tokens, first_pos, want_all):
        """Runs up to `chunk` tokens from position first_pos; logits of all of them or the last."""
        b = self._batch
        b.n_tokens = len(tokens)
        for i, t in enumerate(tokens):
            b.token[i] = int(t)
            b.pos[i] = first_pos + i
            b.n_seq_id[i] = 1
            b.seq_id[i][0] = 0
            b.logits[i] = 1 if want_all or i == len(tokens) - 1 else 0
        rc = c.llama_decode(self._ctx, b)
        if rc != 0:
            raise RuntimeError(f"llama_decode returned {rc}")

    def logits(self, tokens, one_by_one=False):
        """float32 [len(tokens), n_vocab]; chunks of `chunk`, or single steps if asked."""
        import numpy as np
        step = 1 if one_by_one else self.chunk
        out = np.empty((len(tokens), self.n_vocab), np.float32)
        self.clear()
        for at in range(0, len(tokens), step):
            part = tokens[at:at + step]
            self.decode(part, at, True)
            rows = c.llama_get_logits(self._ctx)
            flat = np.ctypeslib.as_array(rows, shape=(len(part) * self.n_vocab,))
            out[at:at + len(part)] = flat.reshape(len(part), self.n_vocab)
        return out

    def greedy(self, prompt, n, end):
        """Continues by the likeliest token, up to n or to `end`, which is the last one then."""
        import numpy as np
        tokens = []
        self.clear()
        for at in range(0, len(prompt), self.chunk):
            self.decode(prompt[at:at + self.chunk], at, False)
        while True:
            rows = c.llama_get_logits_ith(self._ctx, -1)
            tokens.append(int(np.ctypeslib.as_array(rows, shape=(self.n_vocab,)).argmax()))
            if tokens[-1] == end or len(tokens) == n:
                return tokens
            self.decode(tokens[-1:], len(prompt) + len(tokens) - 1, True)

    def time_prefill(self, tokens):
        """Seconds for all tokens, logits of the last only."""
        self.clear()
        start = time.perf_counter()
        for at in range(0, len(tokens), self.chunk):
            self.decode(tokens[at:at + self.chunk], at, False)
        c.llama_synchronize(self._ctx)
        return time.perf_counter() - start

    def time_decode(self, tokens):
        """Seconds for the tokens one at a time from an empty context."""
        self.clear()
        start = time.perf_counter()
        for at, t in enumerate(tokens):
            self.decode([t], at, True)
            c.llama_synchronize(self._ctx)
        return time.perf_counter() - start

    def tokenize(self, text, special=True):
        """Token ids of text; special tokens in it are recognised, none is added."""
        raw = text.encode()
        vocab = c.llama_model_get_vocab(self._model)
        n = len(raw) + 16
        buf = (ctypes.c_int32 * n)()
        got = c.llama_tokenize(vocab, raw, len(raw), buf, n, False, special)
        if got < 0:
            raise RuntimeError("llama_tokenize: buffer too small")
        return list(buf[:got])
