"""Names that RunPod's catalogue is known to have: GPU types, CPU flavours, data centres.

The live catalogue decides what can be rented; these only let a person know of a slip before
anything runs. Pure. Fed by nobody; feeds ``config`` and ``doubts``.
"""

from __future__ import annotations

GPU_TYPES = (
    "NVIDIA L40S", "NVIDIA L40", "NVIDIA L4", "NVIDIA A40", "NVIDIA A30",
    "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB",
    "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL",
    "NVIDIA H200", "NVIDIA H200 NVL", "NVIDIA B200", "NVIDIA B300 SXM6 AC",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "NVIDIA RTX PRO 4500 Blackwell",
    "NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5080", "NVIDIA GeForce RTX 4090",
    "NVIDIA GeForce RTX 4080 SUPER", "NVIDIA GeForce RTX 4080", "NVIDIA GeForce RTX 4070 Ti",
    "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3080 Ti",
    "NVIDIA GeForce RTX 3080TI", "NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3070",
    "NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 5000 Ada Generation",
    "NVIDIA RTX 4000 Ada Generation", "NVIDIA RTX 4000 SFF Ada Generation",
    "NVIDIA RTX 2000 Ada Generation", "NVIDIA A5000 Ada",
    "NVIDIA RTX A6000", "NVIDIA RTX A5000", "NVIDIA RTX A4500", "NVIDIA  RTX A4500",
    "NVIDIA RTX A4000", "NVIDIA RTX A2000", "NVIDIA RTX A30", "NVIDIA  A30",
    "Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB", "Tesla V100-SXM2-16GB",
    "Tesla V100-SXM2-32GB", "Tesla V100-FHHL-16GB", "Tesla T4",
    "AMD Instinct MI300X OAM",
)  # fmt: skip
"""As the catalogue spells them, the two with two spaces included."""

DATA_CENTERS = (
    "EU-RO-1", "EU-SE-1", "EU-CZ-1", "EU-NL-1", "EU-FR-1", "EUR-IS-1", "EUR-IS-2", "EUR-IS-3",
    "EUR-NO-1", "CA-MTL-1", "CA-MTL-2", "CA-MTL-3", "US-CA-2", "US-DE-1", "US-GA-1", "US-GA-2",
    "US-IL-1", "US-KS-2", "US-KS-3", "US-NC-1", "US-TX-1", "US-TX-3", "US-TX-4", "US-WA-1",
    "OC-AU-1", "AP-JP-1",
)  # fmt: skip

CPU_FLAVOURS = ("cpu5c", "cpu3c", "cpu5g", "cpu3g", "cpu5m", "cpu3m")
"""In the order in which they are offered."""
