# DeepSeek-V3: tp8 ep64 dp32 hsdp8 mb1 recompute=selective mxfp8
# run on every node, with NODE_RANK and MASTER_ADDR set
cat > lakh_plan.py <<'EOF'
from torchtitan.components.quantization import MXFP8GroupedExpertsConverter, MXFP8LinearConverter
from torchtitan.distributed.activation_checkpoint import SelectiveAC
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.models.deepseek_v3.mtp import MTPLoss
from torchtitan.models.deepseek_v3 import model_registry
from torchtitan.models.deepseek_v3.config_registry import deepseek_v3_671b


def plan():
    config = deepseek_v3_671b()
    config.model_spec = model_registry("671B", converters=[MXFP8LinearConverter.Config(model_compile_enabled=True), MXFP8GroupedExpertsConverter.Config(model_compile_enabled=True)], num_mtp_layers=1)
    config.loss = MTPLoss.Config(global_vocab_size=decoder_vocab_size(config.model_spec))
    config.parallelism.data_parallel_replicate_degree = 4
    config.parallelism.data_parallel_shard_degree = 8
    config.parallelism.fsdp_reshard_after_forward = 'always'
    config.parallelism.tensor_parallel_degree = 8
    config.parallelism.enable_sequence_parallel = True
    config.parallelism.context_parallel_degree = 1
    config.parallelism.pipeline_parallel_degree = 1
    config.parallelism.expert_parallel_degree = 64
    config.training.max_context_length = 4096
    config.training.num_tokens_per_microbatch_per_dp_rank = 4096
    config.training.num_tokens_per_train_step = 8388608
    config.training.steps = 119209
    config.training.disable_cuda_graphs = True
    config.compile.enable = True
    config.activation_checkpoint = SelectiveAC.Config()
    return config
EOF
PYTHONPATH="$PWD" torchrun --nnodes 32 --nproc-per-node 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500 \
  -m torchtitan.train --module lakh_plan --config plan
