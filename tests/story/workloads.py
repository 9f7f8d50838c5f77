"""The manifests of the story, as users would write them. Fed to the API server by the acts."""

from __future__ import annotations

from typing import Any

from tests.rig.kueue import queue_of

INFERENCE = "chat"
TRAINING = "train"
REPLICAS = 16
HOME_NODES = 2
GPUS_PER_NODE = 8
FINISH = "sim.dev/finish"
"""A training pod ends once it has this annotation."""
HOME = {"pool": "home"}

CLASSES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: inference}
value: 1000
preemptionPolicy: Never
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: training}
value: 100000
"""

SERVING = f"""
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {INFERENCE}}}
spec:
  maxUnavailable: 2
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector: {{matchLabels: {{app: {INFERENCE}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {INFERENCE}}}
spec:
  replicas: {REPLICAS}
  selector: {{matchLabels: {{app: {INFERENCE}}}}}
  template:
    metadata:
      labels: {{app: {INFERENCE}, vk-provider.dev/burst: "true"}}
    spec:
      priorityClassName: inference
      terminationGracePeriodSeconds: 5
      tolerations:
        - {{key: virtual-kubelet.io/provider, value: vk-provider, effect: NoSchedule}}
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference:
                matchExpressions: [{{key: type, operator: NotIn, values: [virtual-kubelet]}}]
      volumes: [{{name: shm, emptyDir: {{medium: Memory}}}}]
      containers:
        - name: server
          image: vllm/vllm-openai:v0.11.0
          args: ["--model", "Qwen/Qwen3-8B"]
          ports: [{{containerPort: 8000, name: http}}]
          volumeMounts: [{{name: shm, mountPath: /dev/shm}}]
          resources:
            requests: {{cpu: "4", memory: 32Gi}}
            limits: {{nvidia.com/gpu: "1"}}
"""

_TRAINING_JOB = f"""
apiVersion: batch/v1
kind: Job
metadata:
  name: NAME
  labels: {{kueue.x-k8s.io/queue-name: {TRAINING}}}
spec:
  parallelism: {HOME_NODES}
  completions: {HOME_NODES}
  completionMode: Indexed
  template:
    metadata: {{labels: {{app: {TRAINING}}}}}
    spec:
      priorityClassName: training
      restartPolicy: Never
      containers:
        - name: torchrun
          image: pytorch/pytorch:2.8.0
          args: ["torchrun", "--nnodes={HOME_NODES}", "train.py"]
          resources:
            requests: {{cpu: "8", memory: 100Gi}}
            limits: {{nvidia.com/gpu: "{GPUS_PER_NODE}"}}
"""


def training_job(name: str) -> str:
    """A gang that takes every GPU of home; its pods end when they are told to."""
    return _TRAINING_JOB.replace("NAME", name)


CHECK: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "AdmissionCheck",
    "metadata": {"name": "vk-provider-evacuation"},
    "spec": {"controllerName": "vk-provider.dev/evacuation"},
}


def training_queue(**spec: Any) -> list[dict[str, Any]]:
    """A queue with home's GPUs as quota. What serves there is not counted: training always wins."""
    gpus = str(HOME_NODES * GPUS_PER_NODE)
    resources = {"cpu": "128", "memory": "2Ti", "nvidia.com/gpu": gpus}
    return queue_of(TRAINING, resources, HOME, **spec)
