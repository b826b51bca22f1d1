package epoch

// setting bounds an exploration.
type setting struct {
	name     string
	branches []string // main first
	roles    []role
	sink     sinkKind
	records  int // that there are to read
	batch    int // the most records in an epoch
	parts    int // of a delivery
	most     int // positions that a follower covers in one step
	// objects says that data objects are kept account of, since clean-up runs.
	objects bool
	// spare is the first of the branches with which processes of the first two builds
	// resume, in turns; 0: none.
	spare   int8
	notes   bool // openings that note come also between data
	early   bool // seals come also before all is covered
	foreign bool // each build has a source that the other lacks
	fresh   bool // the first build lacks the sink
	forget  int  // the record before which what was read first is deleted by request
	left    failures
	// endsWell says that all must be able to be read and delivered, from every state.
	endsWell bool
	mayKill  func(w *moment) bool
	reaches  []string // what some state must have come to

	without string // the rule that is off

	entries map[string]*logEntry
	lives   map[string]*generation
	ids     map[string]int32 // of names, for keys
}

// failures are how many of each kind may still come.
type failures struct {
	crash  uint8 // a process is killed
	hang   uint8 // a process never moves again, and isn't dead
	create uint8 // a create's answer is lost, or it is, or it is late
	doubt  uint8 // the end of a delivery is doubtful
	hasty  uint8 // an owner that lives is taken for gone
	loss   uint8 // the sink loses its record, or goes back
}

// role is what a process is there for. It is started again when it has ended.
type role struct {
	name   string
	build  Build
	begins place
	kind   BranchKind
	branch int8 // that it begins, gives up or cleans up
	lacks  bool // its build lacks the sink
	gap    bool // a person consents to a gap
	fills  bool // it fills the sink before the cut, which no build before has
	owns   bool // it is main's owner at the beginning
	dead   bool // and has died since
	stays  bool // nobody starts it again
	keep   Epoch
	rounds int // of clean-up
	after  func(w *moment) bool
}

func (s *setting) off(rule string) bool { return s.without == rule }

// entry is the one entry of a content.
func (s *setting) entry(m Manifest) *logEntry {
	data, err := m.Encode()
	if err != nil {
		panic(err)
	}
	if e, ok := s.entries[string(data)]; ok {
		return e
	}
	e := &logEntry{m, Hash(data), data, int32(len(s.entries) + 1)}
	s.entries[string(data)] = e
	return e
}

func (s *setting) generation(r LiveRecord) *generation {
	data, err := r.encode()
	if err != nil {
		panic(err)
	}
	if g, ok := s.lives[string(data)]; ok {
		return g
	}
	g := &generation{r, data, int32(len(s.lives) + 1)}
	s.lives[string(data)] = g
	return g
}

// id numbers a name.
func (s *setting) id(name string) int32 {
	n, ok := s.ids[name]
	if !ok {
		n = int32(len(s.ids) + 1)
		s.ids[name] = n
	}
	return n
}
