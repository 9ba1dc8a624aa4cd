package main

import "strings"

// lock finds the locks that a read takes, and the skipping of rows that are locked.
func (f *finder) lock(i int) {
	j := i
	switch {
	case f.word(i, "FOR") && f.word(i+1, "UPDATE", "SHARE"):
		j = i + 2
	case f.word(i, "FOR") && f.word(i+1, "NO") && f.word(i+3, "UPDATE"):
		j = i + 4
	case f.word(i, "LOCK") && f.word(i+1, "IN"):
		j = i + 4
	default:
		return
	}
	for n := j; n < min(j+6, len(f.tokens)); n++ {
		if f.word(n, "SKIP") {
			f.add("SKIP LOCKED", n, n+2, "")
			f.add(short(f.text(i, n+2)), i, n+2, "")
			return
		}
	}
	if f.word(j, "OF") {
		j += 2
	}
	f.add(short(f.text(i, j)), i, j, "")
}

// growth finds token + 1, and what else grows with each grant.
func (f *finder) growth(i int) {
	if !f.sign(i, "+") || i == 0 {
		return
	}
	if f.inEra(i-1) && f.word(i+1, "1") {
		f.add("@era) + 1", i, i+2, "+ 0")
		return
	}
	column := f.tokens[i-1].text
	switch column[strings.LastIndex(column, ".")+1:] {
	case "token", "floor", "generation":
	default:
		return
	}
	switch {
	case f.word(i+1, "1"):
		f.add(short(f.text(i-1, i+2)), i, i+2, "+ 0")
	case f.sign(i+1, "("):
		f.add(short(f.text(i-1, f.closing(i+1)+1)), i, i+1, "+ 0 *")
	}
}

// inEra reports whether the parenthesis that ends at i has an era for its last argument.
func (f *finder) inEra(i int) bool {
	return i > 1 && f.sign(i, ")") && strings.HasSuffix(f.text(i-2, i), "@era")
}

// bound finds greatest(a, b) and least(a, b), which keep a value from falling or from growing. What
// is left is what is new: b of the greatest and a of the least, as all statements have it.
func (f *finder) bound(i int) {
	greatest, least := f.word(i, "MAX", "GREATEST"), f.word(i, "MIN", "LEAST")
	if !greatest && !least || !f.sign(i+1, "(") {
		return
	}
	end := f.closing(i + 1)
	args := f.commas(i+2, end)
	if len(args) != 2 {
		return
	}
	if f.inEra(end) {
		f.add("@era", i, end+1, "("+f.text(args[0][0], args[0][1])+")")
		f.add("above @era", i, end+1, "("+f.text(args[1][0], args[1][1])+")")
		return
	}
	kept, dropped := args[1], args[0]
	if least {
		kept, dropped = dropped, kept
	}
	if !strings.ContainsAny(f.text(dropped[0], dropped[1]), "?$") {
		f.add(short(f.text(i, end+1)), i, end+1, "("+f.text(kept[0], kept[1])+")")
	}
}

func (f *finder) commas(i, j int) (parts [][2]int) {
	depth := f.tokens[i].depth
	for n := i; n < j; n++ {
		if f.tokens[n].depth == depth && f.sign(n, ",") {
			parts, i = append(parts, [2]int{i, n}), n+1
		}
	}
	return append(parts, [2]int{i, j})
}

// order finds the order in which a LIMIT takes the first, and that of row_number. The mutant has
// the first of its terms the other way round.
func (f *finder) order(i int) {
	if !f.word(i, "ORDER") || !f.word(i+1, "BY") {
		return
	}
	depth, first, end := f.tokens[i].depth, 0, len(f.tokens)
	for n := i + 2; n < len(f.tokens); n++ {
		t := &f.tokens[n]
		if t.depth < depth || t.depth == depth && t.is("LIMIT", "FOR") {
			end = n
			break
		}
		if first == 0 && t.depth == depth && (t.text == "," || t.is("DESC")) {
			first = n
		}
	}
	if !f.word(end, "LIMIT") && !(i > 1 && f.word(i-3, "BY") || f.sign(i-1, "(")) {
		return
	}
	f.reverse(i, first, end)
}

func (f *finder) reverse(i, first, end int) {
	name := short(f.text(i, end))
	switch {
	case first == 0:
		f.add(name, end-1, end, f.text(end-1, end)+" DESC")
	case f.word(first, "DESC"):
		f.add(name, first, first+1, "")
	default:
		f.add(name, first-1, first, f.text(first-1, first)+" DESC")
	}
}
