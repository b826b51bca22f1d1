package kafka

import (
	"bytes"
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// packed is a piece of a partition as the broker sent it: whole batches of records,
// compressed as the producer did it.
type packed struct {
	part  kmsg.FetchResponseTopicPartition
	to    int64 // the offset behind it
	epoch int32 // the leader epoch of the last batch, or -1
}

// Where the fields of a batch's header are. Those up to the magic are the same in
// all formats; older than the second they have no leader epoch, and are one
// message, which has the offset of the last inside.
const (
	headLength    = 8
	headEpoch     = 12
	headMagic     = 16
	headLastDelta = 23
	headSize      = 61 // of magic 2
	headBefore    = 12 // bytes that the length doesn't count
)

// pack takes what a broker sent of a partition from an offset on, up to the last
// batch that came whole. If nothing did, ok is false.
func pack(part kmsg.FetchResponseTopicPartition, from int64, body int) (p packed, ok bool) {
	p = packed{part: part, to: from, epoch: -1}
	rest, whole := part.RecordBatches, 0
	for len(rest) > headMagic {
		size := headBefore + int(int32(binary.BigEndian.Uint32(rest[headLength:])))
		if size <= headMagic || size > len(rest) {
			break
		}
		to := int64(binary.BigEndian.Uint64(rest)) + 1
		epoch := int32(-1)
		if magic := rest[headMagic]; magic >= 2 {
			if size < headSize {
				break
			}
			to += int64(int32(binary.BigEndian.Uint32(rest[headLastDelta:])))
			epoch = int32(binary.BigEndian.Uint32(rest[headEpoch:]))
		}
		if to > p.to {
			p.to, p.epoch = to, epoch
		}
		whole, rest = whole+size, rest[size:]
	}
	if p.to == from {
		return packed{}, false
	}
	// All partitions' bytes lie in one response, which a piece that waits would hold
	// as a whole.
	p.part.RecordBatches = part.RecordBatches[:whole]
	if whole < body/2 {
		p.part.RecordBatches = bytes.Clone(p.part.RecordBatches)
	}
	return p, true
}
