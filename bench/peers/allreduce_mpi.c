/* MPI_Allreduce of floats: allreduce_mpi BYTES SECONDS. Rank 0 prints the median of a call in us. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t count = argc > 1 && atol(argv[1]) >= 4 ? (size_t)atol(argv[1]) / 4 : 1;
  const double seconds = argc > 2 ? atof(argv[2]) : 1;
  float* values = malloc(count * sizeof(float));
  const size_t most = 1 << 20;
  double* times = malloc(most * sizeof(double));
  size_t calls = 0;
  const double begin = MPI_Wtime();
  for (int over = 0; !over;) {
    for (size_t i = 0; i < count; ++i) values[i] = 1;
    const double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double end = MPI_Wtime();
    if (values[0] != ranks || values[count - 1] != ranks) MPI_Abort(MPI_COMM_WORLD, 1);
    if (calls < most) times[calls++] = (end - start) * 1e6;
    over = rank == 0 && calls > 6 && (end - begin >= seconds || calls == most);
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) {
    qsort(times + 5, calls - 5, sizeof(double), by_size);
    printf("%.2f\n", times[5 + (calls - 5) / 2]);
  }
  MPI_Finalize();
  return 0;
}
