// The sum of an array: each warp adds up its values by shuffles, then adds its sum to the total.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

__global__ void warp_sum(const float *values, int count, float *total) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = index < count ? values[index] : 0.0f;
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(total, sum);
  }
}

int main() {
  const int count = 1 << 20;
  std::vector<float> host(count, 1.0f);
  float *values = nullptr, *total = nullptr, result = 0.0f;
  cudaMalloc(&values, count * sizeof(float));
  cudaMalloc(&total, sizeof(float));
  cudaMemcpy(values, host.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(total, 0, sizeof(float));
  warp_sum<<<count / 256, 256>>>(values, count, total);
  cudaMemcpy(&result, total, sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(values);
  cudaFree(total);
  std::printf("%.0f of %d\n", result, count);
  return result == count ? 0 : 1;
}
