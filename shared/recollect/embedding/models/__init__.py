"""The models that turn texts into vectors.

`minilm` ships with the product and is the default; `multilingual` adds a second one (`sentence_encoder`).
`wordllama` is an optional package, and `openai` asks any server with OpenAI's API. Modules that end in `_graph` build a
model for ONNX Runtime; `wheel_files` reads checked files inside of wheels.
"""
