"""Remember and recall with the client that openapi-python-client makes, and see what an error looks like."""

import os

from recollect_api import AuthenticatedClient
from recollect_api.api.memories import recall_memories, revise_memory, store_memories
from recollect_api.models import Problem, RecallBody, RecalledMemories, RememberBody, RememberItem, ReviseBody

with AuthenticatedClient(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_API_KEY"]) as client:
    told = RememberBody(items=[RememberItem(text="Ada drinks tea", about=["Ada"])])
    store_memories.sync("default", client=client, body=told)
    found = recall_memories.sync("default", client=client, body=RecallBody(query="What does Ada drink?"))
    assert isinstance(found, RecalledMemories)
    print(found.memories[0].text)
    change = ReviseBody(id="01a2068b-60f8-77bf-9341-0c9ad5bf2adb", text="Ada drinks coffee")
    refused = revise_memory.sync("default", client=client, body=change)
    assert isinstance(refused, Problem)
    print(refused.code)
