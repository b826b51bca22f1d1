package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/sluicestream/sluice/connector"
)

// progressSuffix is what a job's progress topic is named by, behind the job's name.
// It has a record for each of the job's sinks in the cluster, written in the
// transactions of the deliveries.
const progressSuffix = ".sluice"

// progressFormat is the version of the form of progress records.
const progressFormat = 1

// progressKey is the key of a progress record, as JSON. The same key is always the
// same bytes, by which the topic is compacted.
type progressKey struct {
	JobID string `json:"job_id"`
	Task  string `json:"task"`
	Sink  string `json:"sink"`
}

// progressValue is the value of a progress record, as JSON.
type progressValue struct {
	Format   int    `json:"format"`
	Position uint64 `json:"position"`
	Part     int    `json:"part"`
	ID       string `json:"id"`
	Job      string `json:"job"`
	Target   string `json:"target"`
	Live     uint64 `json:"live"`
	Branch   string `json:"branch"`
	Epoch    uint64 `json:"epoch"`
	Manifest string `json:"manifest"`
	Topic    string `json:"topic"`
	// Begins and Ends are by the numbers of the topic's partitions. Releases that did
	// not have them left them out.
	Begins map[int32]int64 `json:"begins,omitempty"`
	Ends   map[int32]int64 `json:"ends,omitempty"`
}

// progressRecord is a sink's record, with the topic that it writes to and where its
// rows stand there.
type progressRecord struct {
	connector.SinkRecord
	topic string
	topicSpan
}

// topicSpan is a [connector.Span] of one topic, by the numbers of its partitions.
type topicSpan struct{ begins, ends map[int32]int64 }

// moved is the span behind further rows: newer has, by partition, the offset behind the
// last of them, or 0.
func (s topicSpan) moved(newer []int64) topicSpan {
	s.ends = maps.Clone(s.ends)
	for n, end := range newer {
		if end == 0 {
			continue
		}
		if s.ends == nil {
			s.ends = map[int32]int64{}
		}
		s.ends[int32(n)] = end
	}
	return s
}

// named is the span by the partitions' names.
func (s topicSpan) named(topic string) connector.Span {
	by := func(numbers map[int32]int64) map[string]int64 {
		if numbers == nil {
			return nil
		}
		names := make(map[string]int64, len(numbers))
		for n, at := range numbers {
			names[place{topic, n}.String()] = at
		}
		return names
	}
	return connector.Span{Begins: by(s.begins), Ends: by(s.ends)}
}

func encodeProgressKey(k connector.RecordKey) ([]byte, error) { return encodeJSON(progressKey(k)) }

func encodeProgress(r progressRecord) ([]byte, error) {
	return encodeJSON(progressValue{
		progressFormat, uint64(r.Position), r.Part, r.ID, r.Job, r.Target, r.Live, r.Branch, r.Epoch, r.Manifest, r.topic, r.begins, r.ends,
	})
}

func encodeJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

func decodeProgressKey(b []byte) (connector.RecordKey, error) {
	var k progressKey
	if err := decodeJSON(b, &k); err != nil {
		return connector.RecordKey{}, err
	}
	return connector.RecordKey(k), nil
}

func decodeProgress(b []byte) (r progressRecord, err error) {
	var format struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &format); err != nil {
		return r, err
	}
	if format.Format != progressFormat {
		return r, fmt.Errorf("it has format %d, this build reads format %d", format.Format, progressFormat)
	}
	var v progressValue
	if err := decodeJSON(b, &v); err != nil {
		return r, err
	}
	if v.ID == "" || v.Part < 0 {
		return r, fmt.Errorf("its id is %q and its part %d", v.ID, v.Part)
	}
	for _, offsets := range []map[int32]int64{v.Begins, v.Ends} {
		for n, at := range offsets {
			if n < 0 || at < 0 {
				return r, fmt.Errorf("it has offset %d of partition %d", at, n)
			}
		}
	}
	return progressRecord{connector.SinkRecord{
		Position: connector.Position(v.Position), Part: v.Part, ID: v.ID, Job: v.Job, Target: v.Target,
		Live: v.Live, Branch: v.Branch, Epoch: v.Epoch, Manifest: v.Manifest,
	}, v.Topic, topicSpan{v.Begins, v.Ends}}, nil
}

func decodeJSON(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("there is more behind it")
	}
	return nil
}

// progress is what a progress topic holds.
type progress struct {
	newest map[string]progressEntry // by key
	end    int64                    // the offset up to which it was read
}

type progressEntry struct {
	offset int64
	value  []byte
	by     identity // the producer of its transaction
}

// of is the record of a sink, and the producer that wrote it; nil if there is none.
func (p *progress) of(topic string, k connector.RecordKey) (*progressRecord, identity, error) {
	key, err := encodeProgressKey(k)
	if err != nil {
		return nil, identity{}, err
	}
	e, ok := p.newest[string(key)]
	if !ok {
		return nil, identity{}, nil
	}
	r, err := decodeProgress(e.value)
	if err != nil {
		return nil, identity{}, e.damaged(topic, fmt.Sprintf("the record of sink %s", k.Sink), err)
	}
	return &r, e.by, nil
}

func (e *progressEntry) damaged(topic, what string, err error) error {
	return fmt.Errorf("%w: topic %s, offset %d: %s can't be read: %w", connector.ErrRecord, topic, e.offset, what, err)
}

// refuseStrangers makes sure that no other job writes, or has written, to what a
// sink is about to write to. If the sink has its record already, and has delivered
// nothing, a stranger that has not either and whose record is later gives way.
func (p *progress) refuseStrangers(topic string, k connector.RecordKey, first connector.SinkRecord, own string) error {
	key, err := encodeProgressKey(k)
	if err != nil {
		return err
	}
	mine, made := p.newest[string(key)]
	for text, e := range p.newest {
		other, err := decodeProgressKey([]byte(text))
		if err != nil {
			return e.damaged(topic, "the key "+fmt.Sprintf("%q", text), err)
		}
		if other.JobID == k.JobID {
			continue
		}
		r, err := decodeProgress(e.value)
		if err != nil {
			return e.damaged(topic, fmt.Sprintf("the record of sink %s of job id %s", other.Sink, other.JobID), err)
		}
		if made && r.Manifest == "" && e.offset > mine.offset {
			continue
		}
		if r.topic == own || r.Job == first.Job && other.Sink == k.Sink {
			return fmt.Errorf("%w: sink %s of job %s (id %s) has written to topic %s up to position %d, and sink %s of job %s (id %s) is to write to topic %s for the first time: two jobs of one name, or one whose store was lost. Choose another topic and another name of the sink, or another name of the job; topic %s holds both records",
				connector.ErrRecord, other.Sink, r.Job, other.JobID, r.topic, r.Position, k.Sink, first.Job, k.JobID, own, topic)
		}
	}
	return nil
}
