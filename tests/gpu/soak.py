#!/usr/bin/env python3
"""Many requests to one emitted server, some of them left while they are answered: memory of the process and of its card,
descriptors and slots before and after. Nothing may grow.

    soak.py SERVER [--requests 1000]

Prints a line; exit status 1 where something grew or an answer was not right."""

import argparse
import http.client
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading

CLIENTS = 6
GROWTH = 8 << 20  # bytes of the process: the allocator's, which does not give back what many threads used


class Server:
    def __init__(self, path):
        path = pathlib.Path(path).resolve()
        self.process = subprocess.Popen([path, "--port", "0", "--no-self-test"], cwd=path.parent, stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        else:
            raise SystemExit(f"{path} ended with {self.process.wait()}")
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()

    def sizes(self):
        """(bytes of the process, open files, bytes of the card or None)."""
        pid = self.process.pid
        resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) * 1024
        return resident, len(os.listdir(f"/proc/{pid}/fd")), card_bytes()

    def ask(self, chance):
        """One answer, or one that is left after a moment."""
        words = " ".join(f"w{chance.randrange(90)}" for _ in range(chance.choice([1, 5, 60, 300])))
        body = {"model": "m", "messages": [{"role": "user", "content": words}], "max_tokens": chance.choice([1, 3, 12]), "stream": True,
                "temperature": chance.choice([0, 1]), "seed": chance.randrange(1000)}
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            c.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = c.getresponse()
            if chance.random() < 0.3:
                answer.read(chance.randrange(1, 200))
                return True
            return answer.status == 200 and answer.read().rstrip().endswith(b"data: [DONE]")
        finally:
            c.close()


def card_bytes():
    """What is in use on all cards, or None where nobody says."""
    try:
        p = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        return None
    used = [int(x) << 20 for x in p.stdout.split() if x.isdigit()]
    return sum(used) if p.returncode == 0 and used else None


def storm(server, n, seed):
    """n requests by some clients at once; how many went wrong."""
    wrong, left, lock = [0], list(range(n)), threading.Lock()

    def client():
        while True:
            with lock:
                if not left:
                    return
                k = left.pop()
            try:
                good = server.ask(random.Random(seed + k))
            except (OSError, http.client.HTTPException):
                good = False
            with lock:
                wrong[0] += not good

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return wrong[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--requests", type=int, default=1000)
    a = parser.parse_args()
    server = Server(a.server)
    wrong = storm(server, 200, 10**6)
    before = server.sizes()
    wrong += storm(server, a.requests, 0)
    after = server.sizes()
    server.process.terminate()
    code = server.process.wait(60)
    seen = None not in (before[2], after[2])
    card = "the card was not looked at: nvidia-smi does not tell" if not seen else f"card {before[2]} to {after[2]} bytes"
    print(f"{a.requests} requests: {wrong} wrong; process {before[0]} to {after[0]} bytes, {before[1]} to {after[1]} open files, "
          f"{card}; ended with {code}")
    grown = after[0] - before[0] > GROWTH or after[1] > before[1] or (seen and after[2] > before[2])
    return 1 if wrong or grown or code != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
