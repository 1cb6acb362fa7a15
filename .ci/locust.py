"""python3 locust.py SERVER CAMPAIGN USER... runs claim of examples/load/locustfile.py for each user in turn, without
Locust, and prints each outcome. What the script imports of Locust is here as far as it uses it."""

import http.client
import importlib.util
import json
import os
import sys
import types
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
server, campaign, *users = sys.argv[1:]
os.environ["CAMPAIGN"] = campaign
failed, ends = [0], []


class Response:
    """An answer. Status 0 says that none came, or a part of one."""

    def __init__(self, status, headers, text):
        self.status_code, self.headers, self.text = status, headers, text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def json(self):
        return json.loads(self.text)

    def success(self):
        pass

    def failure(self, _):
        failed[0] += 1


class Client:
    @staticmethod
    def post(path, json=None, headers=None, timeout=None, name=None, catch_response=None):
        body = sys.modules["json"].dumps(json).encode()
        request = urllib.request.Request(server + path, body, {"Content-Type": "application/json", **headers})
        try:
            answer = urllib.request.urlopen(request, timeout=timeout)
        except urllib.error.HTTPError as refused:
            answer = refused
        except OSError:
            return Response(0, None, "")
        try:
            return Response(answer.status, answer.headers, answer.read())
        except http.client.IncompleteRead:
            return Response(0, None, "")


locust = types.ModuleType("locust")
locust.HttpUser, locust.constant, locust.task = object, lambda wait: wait, lambda do: do
locust.events = types.SimpleNamespace(request=types.SimpleNamespace(fire=lambda **said: ends.append(said)))
sys.modules["locust"] = locust
spec = importlib.util.spec_from_file_location("locustfile", os.path.join(os.path.dirname(__file__), "../examples/load/locustfile.py"))
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)
shopper = script.Shopper()
shopper.client = Client()
for user in users:
    print(user, shopper.claim(user) or "-")
unknown = sum(end["exception"] is not None for end in ends)
print("outcomes", len(ends) - unknown, "unknown", unknown, "mistakes", len(users) - len(ends), "asked again" if failed[0] else "asked once")
