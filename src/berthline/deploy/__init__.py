"""Learned policies in use: in the native core, by onnxruntime, or in torch where nothing else can.

Only `torch_policy.py` and `export_onnx.py` import torch, on first use.
"""
