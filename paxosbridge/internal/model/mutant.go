package model

// Mutant is a guard, or an order of steps, that can be removed.
type Mutant uint8

// The mutants. Their texts say what each removes.
const (
	whole Mutant = iota

	nofloor
	nohomeguard
	flipunfenced
	noepochbump
	reopensealed
	sealunfenced
	retnoepoch
	openfirst
	retbeforeseal
	reapmoved
	dropsealed

	departowner
	departtoken
	departhome
	returnhome
	openolder
	sealepoch
	sealopen
	acquiresealed
	acquireepoch
	nohelpopen
	nohelpreturn

	recalllower
	recallfloor

	nowait
	noforcedepoch
	nosupersede
	novalidate
	onebump

	mutants
)

var mutantTexts = [mutants][2]string{
	whole:         {"whole", "no guard is removed"},
	nofloor:       {"nofloor", "a new row does not start above its floor"},
	nohomeguard:   {"nohomeguard", "the table grants whatever placement the row names"},
	flipunfenced:  {"flipunfenced", "Depart names neither owner nor token"},
	noepochbump:   {"noepochbump", "Depart stays in the epoch"},
	reopensealed:  {"reopensealed", "Open opens a sealed record again"},
	sealunfenced:  {"sealunfenced", "Seal does not name the holder"},
	retnoepoch:    {"retnoepoch", "Return does not name the epoch"},
	openfirst:     {"openfirst", "the mover opens the record before the row departs"},
	retbeforeseal: {"retbeforeseal", "the mover returns the row without having sealed the record"},
	reapmoved:     {"reapmoved", "the reaper deletes rows that are not at placement"},
	dropsealed:    {"dropsealed", "sealed records are removed"},
	departowner:   {"departowner", "Depart does not name the owner"},
	departtoken:   {"departtoken", "Depart does not name the token"},
	departhome:    {"departhome", "Depart does not name the placement"},
	returnhome:    {"returnhome", "Return does not name the placement"},
	openolder:     {"openolder", "Open opens an open record in another epoch, even an older one"},
	sealepoch:     {"sealepoch", "Seal does not name the epoch"},
	sealopen:      {"sealopen", "Seal does not check whether the record is open"},
	acquiresealed: {"acquiresealed", "the cluster grants although the record is sealed"},
	acquireepoch:  {"acquireepoch", "the cluster grants whatever epoch is asked for"},
	nohelpopen:    {"nohelpopen", "only the mover opens the record"},
	nohelpreturn:  {"nohelpreturn", "only the mover returns the row"},
	recalllower:   {"recalllower", "Recall does not check whether the row's epoch is lower"},
	recallfloor:   {"recallfloor", "Recall inserts a row without checking the floor"},
	nowait:        {"nowait", "a key that is taken back by force is granted at once"},
	noforcedepoch: {"noforcedepoch", "a key that is taken back by force stays in its epoch"},
	nosupersede:   {"nosupersede", "the record of a cluster that reappears is not superseded"},
	novalidate:    {"novalidate", "clients work on without reading the row"},
	onebump: {
		"onebump", "a key that is taken back by force begins one epoch, and not two more before",
	},
}

// String is the short name.
func (m Mutant) String() string { return mutantTexts[m][0] }

func (m *Model) lacks(guard Mutant) bool { return m.Without == guard }
