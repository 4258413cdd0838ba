package core

// Quiescer is implemented by a carrier that begins things on its own, such as
// starting programs. Quiesce is called once, early in a stop and before the
// intake closes: what runs goes on and is drained, and from the return of
// Quiesce nothing new is begun. It does not wait for anything to end; the end of
// Run's ctx comes later. It may be called at the same time as every other
// method.
type Quiescer interface {
	Quiesce()
}
