// What nodes and relations a result holds, and where each is drawn.

const RING = 130; // Pixels from one ring to the next, at least.
const SPACE = 84; // Pixels of a ring for each of its nodes.

function counted(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Nodes, the one in the middle first, and relations between them. Relations name nodes by name, or by id. */
function graphOf({ nodes, relations }) {
  const found = nodes.map((node) => ({ ...node, label: node.name ?? node.id, edges: [] }));
  const called = new Map();
  for (const node of found) called.set(node.label, node);
  for (const node of found) called.set(node.id, node);
  const meet = (label) => {
    if (!called.has(label)) {
      called.set(label, { label, isUnknown: true, edges: [] });
      found.push(called.get(label));
    }
    return called.get(label);
  };
  const edges = (relations ?? []).map(({ subject, predicate, object }) => {
    const edge = { from: meet(subject), predicate, to: meet(object) };
    for (const end of new Set([edge.from, edge.to])) end.edges.push(edge);
    return edge;
  });
  found.forEach((node, place) => { node.place = place; });
  return { nodes: found, edges };
}

/** Put the first node in the middle, and the others on rings by their distance: evenly, children in their parents' order. */
function place([centre, ...others]) {
  const rings = [[centre]];
  const met = new Set([centre]);
  while (rings.at(-1).length) rings.push(rings.at(-1).flatMap((node) => newNeighbours(node, met)));
  rings[1].push(...others.filter((node) => !met.has(node))); // Tied to nothing that is shown.
  let radius = 0;
  for (const ring of rings) {
    if (ring !== rings[0]) radius = Math.max(radius + RING, (ring.length * SPACE) / (2 * Math.PI));
    ring.forEach((node, place) => {
      const angle = (2 * Math.PI * (place + 0.5)) / ring.length;
      [node.x, node.y] = [radius * Math.cos(angle), radius * Math.sin(angle)];
    });
  }
}

function newNeighbours(node, met) {
  const found = [];
  for (const { from, to } of node.edges) {
    const other = from === node ? to : from;
    if (!met.has(other)) found.push(other);
    met.add(other);
  }
  return found;
}
