package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"

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
}

func encodeProgressKey(k connector.RecordKey) ([]byte, error) { return encodeJSON(progressKey(k)) }

// encodeProgress writes a record, with the topic that the sink writes to.
func encodeProgress(r connector.SinkRecord, topic string) ([]byte, error) {
	return encodeJSON(progressValue{
		progressFormat, uint64(r.Position), r.Part, r.ID, r.Job, r.Target, r.Live, r.Branch, r.Epoch, r.Manifest, topic,
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

func decodeProgress(b []byte) (_ connector.SinkRecord, topic string, err error) {
	var format struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &format); err != nil {
		return connector.SinkRecord{}, "", err
	}
	if format.Format != progressFormat {
		return connector.SinkRecord{}, "", fmt.Errorf("it has format %d, this build reads format %d", format.Format, progressFormat)
	}
	var v progressValue
	if err := decodeJSON(b, &v); err != nil {
		return connector.SinkRecord{}, "", err
	}
	if v.ID == "" || v.Part < 0 {
		return connector.SinkRecord{}, "", fmt.Errorf("its id is %q and its part %d", v.ID, v.Part)
	}
	return connector.SinkRecord{
		Position: connector.Position(v.Position), Part: v.Part, ID: v.ID, Job: v.Job, Target: v.Target,
		Live: v.Live, Branch: v.Branch, Epoch: v.Epoch, Manifest: v.Manifest,
	}, v.Topic, nil
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
func (p *progress) of(topic string, k connector.RecordKey) (*connector.SinkRecord, identity, error) {
	key, err := encodeProgressKey(k)
	if err != nil {
		return nil, identity{}, err
	}
	e, ok := p.newest[string(key)]
	if !ok {
		return nil, identity{}, nil
	}
	r, _, err := decodeProgress(e.value)
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
		r, theirs, err := decodeProgress(e.value)
		if err != nil {
			return e.damaged(topic, fmt.Sprintf("the record of sink %s of job id %s", other.Sink, other.JobID), err)
		}
		if made && r.Manifest == "" && e.offset > mine.offset {
			continue
		}
		if theirs == own || r.Job == first.Job && other.Sink == k.Sink {
			return fmt.Errorf("%w: sink %s of job %s (id %s) has written to topic %s up to position %d, and sink %s of job %s (id %s) is to write to topic %s for the first time: two jobs of one name, or one whose store was lost. Choose another topic and another name of the sink, or another name of the job; topic %s holds both records",
				connector.ErrRecord, other.Sink, r.Job, other.JobID, theirs, r.Position, k.Sink, first.Job, k.JobID, own, topic)
		}
	}
	return nil
}
