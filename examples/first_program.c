/* The gradients of one 3x3 convolution whose dY is about 1e-8.
 * SPDX-License-Identifier: Apache-2.0 */
#include <clconv/clconv.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4, C = 8, H = 16, W = 16, K = 16, R = 3, S = 3 };

static void check(clconv_status status)
{
    if (status == CLCONV_OK)
        return;
    fprintf(stderr, "%s: %s\n", clconv_status_name(status), clconv_last_error());
    exit(EXIT_FAILURE);
}

static cl_mem filled(cl_context context, size_t count, float value)
{
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; data && i < count; ++i)
        data[i] = value;
    cl_mem mem =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                       count * sizeof *data, data, NULL);
    free(data);
    return mem;
}

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) !=
            CL_SUCCESS) {
        fprintf(stderr, "no OpenCL device\n");
        return 77;
    }
    cl_context cl = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(cl, device, 0, NULL);

    clconv_desc desc;
    clconv_desc_init(&desc);
    desc.n = N, desc.c = C, desc.h = H, desc.w = W;
    desc.k = K, desc.r = R, desc.s = S;
    desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;

    clconv_context *context;
    clconv_plan *plan;
    check(clconv_context_create(cl, device, NULL, &context));
    check(clconv_plan_create(context, &desc, CLCONV_OP_BACKWARD, NULL, &plan));

    clconv_backward_args args;
    clconv_backward_args_init(&args);
    args.x.mem = filled(cl, N * C * H * W, 1.0f);
    args.w.mem = filled(cl, K * C * R * S, 0.5f);
    args.dy.mem = filled(cl, N * K * H * W, 1e-8f);
    args.dw.mem = filled(cl, K * C * R * S, 0.0f);
    args.db.mem = filled(cl, K, 0.0f);
    args.dx.mem = filled(cl, N * C * H * W, 0.0f);
    check(clconv_enqueue_backward(plan, queue, &args, 0, NULL, NULL));

    float dw[K * C * R * S];
    clEnqueueReadBuffer(queue, args.dw.mem, CL_TRUE, 0, sizeof dw, dw, 0, NULL,
                        NULL);
    printf("dW[0][0][1][1] = %.4g, exactly %.4g; by the usual fp16 cast 0\n",
           dw[4], N * H * W * 1e-8);

    clconv_plan_release(plan);
    clconv_context_release(context);
    return EXIT_SUCCESS;
}
