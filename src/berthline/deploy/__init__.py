"""Learned policies in use: in the native core, in onnxruntime, or otherwise in torch.

Only `torch_policy.py` and `export_onnx.py` import torch, on first use.
"""
