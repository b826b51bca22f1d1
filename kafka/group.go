package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicestream/sluice/connector"
)

// groupReader is a reader whose cluster is told how far it has read.
type groupReader struct{ *reader }

// groupPrefix begins the metadata of the job's offsets; the job's id follows.
const groupPrefix = "sluice:"

// groupMetadata stands with the offsets of a job's group, so that another job's are
// told apart.
func groupMetadata(jobID string) string { return groupPrefix + jobID }

// group is the name of the job's group.
func (r *reader) group() string { return cmp.Or(r.settings.group, r.opening.Job) }

// Cluster implements [connector.GroupReader]: the cluster's own id.
func (r groupReader) Cluster() string { return r.cluster }

// Group implements [connector.GroupReader].
func (r groupReader) Group() string { return r.group() }

// CommitOffsets implements [connector.GroupReader].
func (r groupReader) CommitOffsets(ctx context.Context, offsets map[string]connector.Offset) error {
	return r.commit(ctx, r.group(), offsets)
}

// CommitBranchOffsets implements [connector.BranchGroupReader]: the group is the job's
// with a dot and the branch.
func (r groupReader) CommitBranchOffsets(ctx context.Context, branch string, offsets map[string]connector.Offset) error {
	return r.commit(ctx, r.group()+"."+branch, offsets)
}

func (r groupReader) commit(ctx context.Context, group string, offsets map[string]connector.Offset) error {
	if len(offsets) == 0 {
		return nil
	}
	told := kadm.Offsets{}
	for name, at := range offsets {
		p, err := parsePlace(name)
		if err != nil {
			return err
		}
		told.Add(kadm.Offset{Topic: p.topic, Partition: p.number, At: at.Next, LeaderEpoch: at.LeaderEpoch, Metadata: groupMetadata(r.opening.JobID)})
	}
	answers, err := kadm.NewClient(r.client).CommitOffsets(ctx, group, told)
	if err != nil {
		return standing(groupError(group, err))
	}
	for _, a := range answers.Sorted() {
		if a.Err != nil {
			return fmt.Errorf("partition %s: %w", place{a.Topic, a.Partition}, standing(groupError(group, a.Err)))
		}
	}
	return nil
}

// checkGroup sees that nobody else uses the job's group.
func (r *reader) checkGroup(ctx context.Context) error {
	return r.ask(ctx, func(ctx context.Context) error {
		group := r.group()
		if err := r.checkPermission(ctx, group); err != nil {
			return err
		}
		if err := r.checkMembers(ctx, group); err != nil {
			return err
		}
		committed, err := groupOffsets(ctx, r.client, group)
		if err != nil {
			return err
		}
		for _, o := range committed {
			id, job := strings.CutPrefix(o.Metadata, groupPrefix)
			switch {
			case job && id != r.opening.JobID:
				return final{&GroupInUseError{Group: group, Job: r.opening.JobID, Found: id}}
			case !job && o.At >= 0 && !r.opening.Begun && !r.settings.begin.takesOver(group):
				return final{&GroupInUseError{Group: group, Job: r.opening.JobID}}
			}
		}
		return nil
	})
}

// takesOver tells whether a job begins where a group has read to.
func (b Beginning) takesOver(group string) bool {
	return b.kind == atGroup && b.group == group || b.otherwise != nil && b.otherwise.takesOver(group)
}

// asksGroup tells whether a job begins where some group has read to.
func (b Beginning) asksGroup() bool {
	return b.kind == atGroup || b.otherwise != nil && b.otherwise.asksGroup()
}

// checkMembers sees that a group has no members.
func (r *reader) checkMembers(ctx context.Context, group string) error {
	members, err := r.members(ctx, group)
	if err != nil {
		return groupError(group, err)
	}
	if len(members) > 0 {
		return final{&GroupInUseError{Group: group, Job: r.opening.JobID, Members: members}}
	}
	return nil
}

// members are the consumers that are in a group now, of either protocol.
func (r *reader) members(ctx context.Context, group string) (members []string, err error) {
	admin := kadm.NewClient(r.client)
	described, err := admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	d := described[group]
	for _, m := range d.Members {
		members = append(members, fmt.Sprintf("%s at %s", m.ClientID, m.ClientHost))
	}
	const dead = "Dead"
	gone := errors.Is(d.Err, kerr.GroupIDNotFound) || d.Err == nil && d.State == dead
	if !gone {
		return members, d.Err
	}
	if newer, err := r.knowsNewGroups(ctx); err != nil || !newer {
		return nil, err
	}
	consumers, err := admin.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	c := consumers[group]
	for _, m := range c.Members {
		members = append(members, fmt.Sprintf("%s at %s", m.ClientID, m.ClientHost))
	}
	if c.Err != nil && !errors.Is(c.Err, kerr.GroupIDNotFound) {
		return nil, c.Err
	}
	return members, nil
}

// knowsNewGroups tells whether the brokers have the newer protocol of groups.
func (r *reader) knowsNewGroups(ctx context.Context) (bool, error) {
	versions, err := kadm.NewClient(r.client).ApiVersions(ctx)
	if err != nil {
		return false, err
	}
	for _, v := range versions {
		if _, ok := v.KeyMaxVersion(kmsg.ConsumerGroupDescribe.Int16()); v.Err == nil && !ok {
			return false, nil
		}
	}
	return true, nil
}

// committed are the offsets of a group that has no members.
func (r *reader) committed(ctx context.Context, group string) (out map[place]kadm.Offset, err error) {
	err = r.ask(ctx, func(ctx context.Context) error {
		if err := r.checkMembers(ctx, group); err != nil {
			return err
		}
		out, err = committedBy(kadm.RequireStable(ctx), r.client, group)
		return err
	})
	return out, onlyDescribed(group, err)
}

// committedBy are the offsets that a group has.
func committedBy(ctx context.Context, client *kgo.Client, group string) (map[place]kadm.Offset, error) {
	answers, err := groupOffsets(ctx, client, group)
	if err != nil {
		return nil, err
	}
	out := map[place]kadm.Offset{}
	for _, o := range answers {
		if o.At >= 0 {
			out[place{o.Topic, o.Partition}] = o
		}
	}
	return out, nil
}

// onlyDescribed is the error for a group that nothing is told to: what is missing is less
// than elsewhere.
func onlyDescribed(group string, err error) error {
	if _, denied := errors.AsType[*PermissionError](err); denied {
		return &PermissionError{Resource: "group " + group, Operation: "Describe"}
	}
	return err
}

// CommittedOffsets implements [connector.CommittedReader]. A group that has members is an
// error: it may still move.
func (r *reader) CommittedOffsets(ctx context.Context, group string) (map[string]connector.Offset, error) {
	committed, err := r.committed(ctx, group)
	return offsetsByName(committed), err
}

func offsetsByName(committed map[place]kadm.Offset) map[string]connector.Offset {
	out := make(map[string]connector.Offset, len(committed))
	for p, o := range committed {
		out[p.String()] = connector.Offset{Next: o.At, LeaderEpoch: -1}
	}
	return out
}

// groupOffsets are all that a group has, which may not be there yet.
func groupOffsets(ctx context.Context, client *kgo.Client, group string) (out []kadm.Offset, err error) {
	answers, err := kadm.NewClient(client).FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, groupError(group, err)
	}
	for _, o := range answers.Sorted() {
		if o.Err != nil {
			return nil, groupError(group, o.Err)
		}
		out = append(out, o.Offset)
	}
	return out, nil
}

// checkPermission sees that offsets may be committed for a group, by a sign of life
// of a member that there isn't: a broker looks at the permission first, and nothing
// comes of it.
func (r *reader) checkPermission(ctx context.Context, group string) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID = group, "sluice-asks-for-permission"
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return groupError(group, err)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); errors.Is(err, kerr.GroupAuthorizationFailed) {
		return groupError(group, err)
	}
	return nil
}

// groupError is the error that a broker has for a group. A permission to read one
// implies all that is asked for.
func groupError(group string, err error) error {
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return final{&PermissionError{Resource: "group " + group, Operation: "Read"}}
	case slices.ContainsFunc([]error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress}, func(e error) bool { return errors.Is(err, e) }):
		return fmt.Errorf("group %s has members of its own now, which Sluice's has never: %w", group, err)
	}
	return err
}
