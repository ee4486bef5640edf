/** Arithmetic on vectors: similarities, a map in two dimensions, NumPy's file format. */

const dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);

/** Vectors of length one; the zero vector stays. */
export const normalize = (vector) => {
  const length = Math.sqrt(dot(vector, vector)) || 1;
  return Float64Array.from(vector, (value) => value / length);
};

/** Cosine similarity of every pair of unit vectors, as rows. */
export function similarities(units) {
  const rows = units.map(() => new Float64Array(units.length));
  units.forEach((a, i) => {
    for (let j = 0; j <= i; j += 1) rows[i][j] = rows[j][i] = dot(a, units[j]);
  });
  return rows;
}

/** The points of the unit vectors in the plane of their two largest principal components. */
export function project(units) {
  const gram = center(similarities(units));
  const first = largest(gram);
  const rest = gram.map((row, i) => row.map((value, j) => value - first.value * first.vector[i] * first.vector[j]));
  const second = largest(rest);
  const scale = ({ value, vector }, i) => Math.sqrt(Math.max(value, 0)) * vector[i];
  return units.map((_, i) => [scale(first, i), scale(second, i)]);
}

/** Take the mean out of both sides of a Gram matrix. */
function center(gram) {
  const means = gram.map((row) => row.reduce((sum, value) => sum + value, 0) / row.length);
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  return gram.map((row, i) => row.map((value, j) => value - means[i] - means[j] + mean));
}

/** The largest eigenvalue with its vector, by power iteration from a fixed start. */
function largest(matrix) {
  let vector = normalize(matrix.map((_, i) => Math.sin(i + 1)));
  let value = 0;
  for (let round = 0; round < 200; round += 1) {
    const image = matrix.map((row) => dot(row, vector));
    const next = Math.sqrt(dot(image, image));
    if (!next) return { value: 0, vector };
    vector = normalize(image);
    if (Math.abs(next - value) < 1e-9 * next) break;
    value = next;
  }
  return { value: dot(matrix.map((row) => dot(row, vector)), vector), vector };
}

/** A float32 matrix as the bytes of a .npy file, version 1.0. */
export function toNpy(vectors) {
  const width = vectors[0]?.length ?? 0;
  const dictionary = `{'descr': '<f4', 'fortran_order': False, 'shape': (${vectors.length}, ${width}), }`;
  const header = dictionary.padEnd(Math.ceil((dictionary.length + 11) / 64) * 64 - 11) + "\n";
  const bytes = new Uint8Array(10 + header.length + 4 * vectors.length * width);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
  bytes.set(new TextEncoder().encode(header), 10);
  const view = new DataView(bytes.buffer, 10 + header.length);
  vectors.flat().forEach((value, index) => view.setFloat32(4 * index, value, true));
  return bytes;
}
