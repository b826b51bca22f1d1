package plan

import "fmt"

// Unfit adds that this build could not open a sink.
func (p *Plan) Unfit(sink string, why error) {
	if l := p.Line(SinkPart, sink); l != nil {
		l.Add(Refused, sink+": this build could not open it: "+why.Error(), "")
	}
}

// Unasked notes that a sink could not be asked whether this build could open it.
func (p *Plan) Unasked(sink string, why error) {
	if l := p.Line(SinkPart, sink); l != nil {
		l.Note("it could not be asked whether it can be opened: " + why.Error())
	}
}

// Lost refuses a source of which a partition has lost records that come next: the first
// that there still is lies behind the offset that is needed.
func (p *Plan) Lost(source, partition string, needed, first int64, do string) {
	if l := p.Line(SourcePart, source); l != nil {
		l.Add(Refused, fmt.Sprintf("%s: partition %s: inputs are gone: offset %d is needed, and the first that is left is %d", source, partition, needed, first), do)
	}
}

// Unread notes that a source could not be asked whether it still has what comes next.
func (p *Plan) Unread(source string, why error) {
	if l := p.Line(SourcePart, source); l != nil {
		l.Note("it could not be asked whether it still has what comes next: " + why.Error())
	}
}
