"""As much of the package openai as the README's snippet uses, with no package but Python's own."""

import json
import os
import urllib.request


class _Object:
    def __init__(self, fields):
        for name, value in fields.items():
            setattr(self, name, _object(value))


def _object(value):
    if isinstance(value, dict):
        return _Object(value)
    if isinstance(value, list):
        return [_object(v) for v in value]
    return value


class OpenAI:
    def __init__(self, base_url):
        self.chat = self.completions = self
        self._url = base_url + "/chat/completions"

    def create(self, **body):
        request = urllib.request.Request(self._url, json.dumps(body).encode(), {
            "Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
        with urllib.request.urlopen(request) as answer:
            return _object(json.load(answer))
