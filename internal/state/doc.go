// Package state keeps a state's entries in segments: Avro object container
// files ordered by slot and key, one small one for each epoch that changed the
// state, folded together by merges in the background.
//
// A shard encodes what an epoch changed into [Changes]; [Write] sorts them into
// a segment; [PlanMerge] decides which segments are worth merging and [Merge]
// does it; [Restore] reads all of them back, [Read] looks into them.
//
// A newer segment's entry replaces an older one's; an entry without a value is
// a delete. Nothing here decodes a value.
package state
