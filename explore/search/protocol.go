package search

// Teller is a model that can tell a run in words.
type Teller interface {
	Model
	// Story plays the choices from the start and gives a line for each.
	Story(choices []Choice) []string
}

// Protocol is one setting as the table has it: a protocol, what it meets, and how much may go wrong.
type Protocol struct {
	Name       string
	Kind       string // shipped or baseline
	Capability string
	What       string
	Bound      string
	// New makes the model of one search. A wide one allows more than can be searched as a whole, for walks at random.
	New func(wide bool) Teller
}
