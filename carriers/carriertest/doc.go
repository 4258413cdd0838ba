// Package carriertest is the conformance suite that every carrier passes, and
// an in-memory carrier that passes it.
//
// A carrier's conformance_test.go says how to build the carrier and the foreign
// side of its link, and the suite does the rest:
//
//	func TestConformance(t *testing.T) {
//		carriertest.Run(t, newFixture)
//	}
//
// The suite stands on both sides of the port. It is the Intake: a scripted one
// that blocks, fails and settles when a check says so, with any verdict, and
// always in the order of the offers. And through the Fixture it is the far
// side: it puts frames on the wire, watches what the carrier acknowledges, reads
// what comes out, cuts the link and restores it. What a carrier cannot do is
// said once, in its Limits where the port has a word for it, else by a field of
// the Fixture that is left empty; the checks that it rules out are not run, and
// the suite logs their names.
//
// Each check is one subtest and one function, in the file of its subject:
// delivery.go (what passes, unchanged and in order), settle.go
// (when the carrier acknowledges), send.go (what a Send reports), limits.go
// (what the carrier declares), link.go (cut and restored), lifecycle.go (start,
// stop, nothing left behind).
//
// Checks are written against the small interface T, so that the suite can be
// tested itself: mutants_test.go breaks the in-memory carrier on purpose, and
// each mutant must fail the check that was written for it and no other.
//
// Memory is the in-memory carrier. It is an honest reference, and the far side
// of the gateway's own tests.
package carriertest
