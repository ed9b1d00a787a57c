// Package writers takes package exclusive through every state of a small world: nodes with devices, a cluster with its
// blocklist, an orchestrator that asks for anything at any time, and whatever may go wrong.
//
// The code under search is the one that ships, [exclusive.Manager.Step]; only its doors are doubles. A state is the
// storage, the kernels, and each plugin process's memo. What the doubles promise is what doors.go of package exclusive
// asks of the real ones; what is behind those is tested elsewhere.
//
// What is judged, in every state:
//
//   - no two clients that the storage accepts and that have been exposed and not unmapped, or run a mkfs;
//   - no mkfs on data, nothing exposed that is half made;
//   - no fence lifted whose client still has a device;
//   - after Check, whoever has lost the volume knows, and nobody else is told so;
//   - if every process dies here, each node alone gets the volume, gives it back without the right to fence, and once all
//     have swept, no fence is left on the blocklist or on the list.
//
// Not modelled: an instance that comes twice (nonces), several volumes on one client, writes that outlive their machine
// in the network, clocks and heartbeats (the evidence is simply wrong at times), placement groups that learn of a fence
// one by one.
package writers
