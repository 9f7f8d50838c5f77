"""What the simulated service rents: GPU types, CPU flavours and data centres, with stock.

Prices and sizes are of the kind the service publishes; they serve rehearsal, not accounting.
Fed by nothing; read by ``model`` (placement, price) and ``views`` (the catalogue's answers).
"""

from __future__ import annotations

from dataclasses import dataclass, field

UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU type: its size, its list prices and the data centres that have it."""

    id: str
    name: str
    memory: int
    secure_price: float
    community_price: float
    max_count: int = 8
    pool: str | None = None
    manufacturer: str = "NVIDIA"
    data_centers: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ("12.4", "12.8", "13.0")

    def price(self, cloud: str) -> float:
        """USD per hour for one GPU in ``cloud``."""
        return self.community_price if cloud == "COMMUNITY" else self.secure_price


@dataclass(frozen=True, slots=True)
class CpuFlavour:
    """One CPU flavour; sold in powers of two of vCPUs."""

    id: str
    name: str
    group: str
    price_per_vcpu: float
    ram_per_vcpu: float
    min_vcpu: int = 2
    max_vcpu: int = 32


@dataclass(frozen=True, slots=True)
class DataCentre:
    """One data centre with what the catalogue says about it."""

    id: str
    name: str
    region: str
    global_network: bool = True
    volume_types: tuple[str, ...] = ("STANDARD",)
    compliance: tuple[str, ...] = ("SOC_2_TYPE_2",)


DATA_CENTRES = (
    DataCentre("EU-RO-1", "EU Romania 1", "EUROPE", compliance=("GDPR", "ISO_IEC_27001")),
    DataCentre("EU-SE-1", "EU Sweden 1", "EUROPE", compliance=("GDPR",)),
    DataCentre(
        "US-KS-2", "US Kansas 2", "NORTH_AMERICA", volume_types=("STANDARD", "HIGH_PERFORMANCE")
    ),
    DataCentre("US-TX-3", "US Texas 3", "NORTH_AMERICA", volume_types=()),
    DataCentre("AP-JP-1", "Asia Japan 1", "ASIA", global_network=False),
)
EVERYWHERE = tuple(centre.id for centre in DATA_CENTRES)
WEST = ("EU-RO-1", "EU-SE-1", "US-KS-2", "US-TX-3")

GPUS = (
    GpuModel("NVIDIA L4", "L4", 24, 0.43, 0.39, pool="ADA_24", data_centers=EVERYWHERE),
    GpuModel(
        "NVIDIA GeForce RTX 4090", "RTX 4090", 24, 0.69, 0.34, pool="ADA_24", data_centers=WEST
    ),
    GpuModel("NVIDIA RTX A6000", "RTX A6000", 48, 0.49, 0.33, pool="AMPERE_48", data_centers=WEST),
    GpuModel("NVIDIA L40S", "L40S", 48, 0.86, 0.79, pool="ADA_48_PRO", data_centers=EVERYWHERE),
    GpuModel(
        "NVIDIA A100 80GB PCIe", "A100 PCIe", 80, 1.64, 1.19, pool="AMPERE_80", data_centers=WEST
    ),
    GpuModel(
        "NVIDIA A100-SXM4-80GB", "A100 SXM", 80, 1.74, 1.39, pool="AMPERE_80", data_centers=WEST
    ),
    GpuModel(
        "NVIDIA H100 80GB HBM3",
        "H100 SXM",
        80,
        2.99,
        2.69,
        pool="ADA_80_PRO",
        data_centers=EVERYWHERE,
    ),
    GpuModel(
        "NVIDIA H200",
        "H200 SXM",
        141,
        3.99,
        3.59,
        pool="HOPPER_141",
        data_centers=("EU-RO-1", "US-KS-2"),
    ),
    GpuModel(
        "AMD Instinct MI300X OAM",
        "MI300X",
        192,
        2.49,
        2.49,
        manufacturer="AMD",
        data_centers=("EU-RO-1",),
        cuda=(),
    ),
)
CPUS = (
    CpuFlavour("cpu3c", "Compute-Optimized", "Gen 3", 0.03, 2.0),
    CpuFlavour("cpu5c", "Compute-Optimized", "Gen 5", 0.035, 2.0),
    CpuFlavour("cpu5g", "General Purpose", "Gen 5", 0.045, 4.0),
    CpuFlavour("cpu5m", "Memory-Optimized", "Gen 5", 0.06, 8.0),
)


@dataclass(slots=True)
class Catalogue:
    """The shop: what there is, and how much of it is free where somebody set a limit."""

    gpus: tuple[GpuModel, ...] = GPUS
    cpus: tuple[CpuFlavour, ...] = CPUS
    centres: tuple[DataCentre, ...] = DATA_CENTRES
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    """Free units by (GPU type or CPU flavour, data centre); "*" means any centre together."""

    def gpu(self, gpu_id: str) -> GpuModel | None:
        """The GPU type of that id."""
        return next((gpu for gpu in self.gpus if gpu.id == gpu_id), None)

    def cpu(self, cpu_id: str) -> CpuFlavour | None:
        """The CPU flavour of that id."""
        return next((cpu for cpu in self.cpus if cpu.id == cpu_id), None)

    def free(self, kind: str, centre: str) -> int:
        """How many units of ``kind`` are free in ``centre``."""
        return min(self.limits.get((kind, key), UNLIMITED) for key in (centre, "*"))

    def take(self, kind: str, centre: str, units: int) -> None:
        """Book ``units`` (negative: give back) against the limits that apply."""
        for key in ((kind, centre), (kind, "*")):
            if key in self.limits:
                self.limits[key] -= units

    def level(self, kind: str, centre: str, units: int = 1) -> str:
        """The stock as the catalogue words it: NONE, LOW, MEDIUM or HIGH."""
        free = self.free(kind, centre) // units
        return "NONE" if free < 1 else "LOW" if free <= 2 else "MEDIUM" if free <= 8 else "HIGH"
