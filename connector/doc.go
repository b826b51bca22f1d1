// Package connector is the contract between Sluice and what it reads and
// writes. A source is partitions with replayable offsets. A sink encodes typed
// rows to frozen bytes and, apart from that, delivers frozen bytes under a
// position, so that each is applied once.
package connector
