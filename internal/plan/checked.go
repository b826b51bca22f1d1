package plan

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
