package tell

// Later2 and those after it return a function that has f called by q, or nil if f is nil.
func Later2[A, B any](q *Queue, f func(A, B)) func(A, B) {
	if f == nil {
		return nil
	}
	return func(a A, b B) { q.Add(func() { f(a, b) }) }
}

// Later3 is for functions of three arguments.
func Later3[A, B, C any](q *Queue, f func(A, B, C)) func(A, B, C) {
	if f == nil {
		return nil
	}
	return func(a A, b B, c C) { q.Add(func() { f(a, b, c) }) }
}

// Later4 is for functions of four arguments.
func Later4[A, B, C, D any](q *Queue, f func(A, B, C, D)) func(A, B, C, D) {
	if f == nil {
		return nil
	}
	return func(a A, b B, c C, d D) { q.Add(func() { f(a, b, c, d) }) }
}

// Later5 is for functions of five arguments.
func Later5[A, B, C, D, E any](q *Queue, f func(A, B, C, D, E)) func(A, B, C, D, E) {
	if f == nil {
		return nil
	}
	return func(a A, b B, c C, d D, e E) { q.Add(func() { f(a, b, c, d, e) }) }
}
