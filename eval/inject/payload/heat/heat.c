/* Explicit heat equation on a plate, rows divided among the ranks. heat INPUT */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int nx, ny, steps, every; double alpha, dt, dx; char restart[256]; } Input;

static int rank, size;

static void stop(const char *what, int code) {
    fprintf(stderr, "ERROR (rank %d): %s\n", rank, what);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, code);
}

static Input read_input(const char *path) {
    Input in = {256, 256, 2000, 100, 1.0, 1e-6, 2e-3, ""};
    FILE *f = fopen(path, "r");
    if (!f) { perror(path); stop("cannot read input deck", 2); }
    char key[64], value[256], line[400], what[512];
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#' || sscanf(line, " %63[^= ] = %255s", key, value) != 2) continue;
        if (!strcmp(key, "nx")) in.nx = atoi(value);
        else if (!strcmp(key, "ny")) in.ny = atoi(value);
        else if (!strcmp(key, "steps")) in.steps = atoi(value);
        else if (!strcmp(key, "every")) in.every = atoi(value);
        else if (!strcmp(key, "alpha")) in.alpha = atof(value);
        else if (!strcmp(key, "dt")) in.dt = atof(value);
        else if (!strcmp(key, "dx")) in.dx = atof(value);
        else if (!strcmp(key, "restart")) strncpy(in.restart, value, 255);
        else { snprintf(what, sizeof what, "unknown keyword '%s' in %s", key, path); stop(what, 3); }
    }
    fclose(f);
    return in;
}

static void exchange(double *u, int rows, int ny) {
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(u + ny, ny, MPI_DOUBLE, up, 1, u + (rows + 1) * ny, ny, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(u + rows * ny, ny, MPI_DOUBLE, down, 2, u, ny, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double step(const double *u, double *v, int rows, const Input *in) {
    double c = in->alpha * in->dt / (in->dx * in->dx), change = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j < in->ny - 1; j++) {
            const double *p = u + i * in->ny + j;
            double d = c * (p[1] + p[-1] + p[in->ny] + p[-in->ny] - 4 * p[0]);
            v[i * in->ny + j] = p[0] + d;
            change += d * d;
        }
    return change;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Input in = read_input(argc > 1 ? argv[1] : "heat.in");
    int rows = in.nx / size, ny = in.ny;
    if (rank == 0) {
        printf(" heat2d 1.4.2 -- explicit heat equation\n grid %d x %d on %d ranks, %d rows each\n", in.nx, ny, size, rows);
        printf(" dt = %.3e  dx = %.3e  CFL = %.4f\n", in.dt, in.dx, in.alpha * in.dt / (in.dx * in.dx));
        printf("    step          time       residual      max(T)    wall [s]\n");
    }
    double *u = calloc((size_t)(rows + 2) * ny, sizeof *u), *v = calloc((size_t)(rows + 2) * ny, sizeof *v);
    for (int i = 1; i <= rows; i++)
        for (int j = 0; j < ny; j++) u[i * ny + j] = sin(0.05 * (rank * rows + i)) * cos(0.03 * j) * 300.0;
    memcpy(v, u, sizeof *u * (rows + 2) * ny);
    double start = MPI_Wtime();
    for (int n = 1; n <= in.steps; n++) {
        exchange(u, rows, ny);
        double change = step(u, v, rows, &in), total;
        double *t = u; u = v; v = t;
        if (n % in.every == 0) {
            double top = 0, peak;
            for (int k = ny; k < (rows + 1) * ny; k++) if (fabs(u[k]) > top) top = fabs(u[k]);
            MPI_Allreduce(&change, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            MPI_Allreduce(&top, &peak, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            double residual = sqrt(total / ((double)in.nx * ny));
            if (rank == 0) {
                printf("%8d  %12.6e  %12.6e  %12.5e  %9.2f\n", n, n * in.dt, residual, peak, MPI_Wtime() - start);
                fflush(stdout);
            }
            if (!isfinite(residual)) {
                if (rank == 0) fprintf(stderr, "ERROR: non-finite residual at step %d, solution diverged\n", n);
                if (rank == 0) { fflush(stderr); MPI_Abort(MPI_COMM_WORLD, 4); }
                MPI_Barrier(MPI_COMM_WORLD);
            }
        }
    }
    if (rank == 0) printf(" finished: %d steps in %.2f s\n", in.steps, MPI_Wtime() - start);
    free(u);
    free(v);
    MPI_Finalize();
    return 0;
}
