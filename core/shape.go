package core

import "time"

// Validate runs steps 3, 4 and 5 in their order and returns the first refusal.
// The address is what the carrier's own address said of the message; nil where
// the carrier has none.
func (e *Envelope) Validate(now time.Time, p FreshnessPolicy, a *Address) *Rejection {
	if rej := e.CheckFresh(now, p); rej != nil {
		return rej
	}
	if rej := e.CheckShape(); rej != nil {
		return rej
	}
	if rej := e.CheckAddress(a); rej != nil {
		return rej
	}
	return e.CheckBody()
}

// CheckShape is step 4: the surface, container, work and recipient that the
// kind demands or forbids (section 1 of docs/protocol.md). A fault of the
// surface or its container ids is invalid_surface, every other is malformed.
func (e *Envelope) CheckShape() *Rejection {
	if !e.Kind.Conversation() {
		return e.checkDiscoveryShape()
	}
	if rej := e.checkSurface(); rej != nil {
		return rej
	}
	switch {
	case e.WorkID == "" && e.Kind != KindSay:
		return malformed(StepShape, "work_id is required for kind "+string(e.Kind))
	case e.WorkID != "" && e.To == "":
		return malformed(StepShape, "to is required with a work_id")
	case e.Surface == SurfaceDirect && e.To == e.From:
		return malformed(StepShape, "to equals from in a direct room")
	}
	return nil
}

// checkDiscoveryShape holds greet and whois, which belong to no conversation.
func (e *Envelope) checkDiscoveryShape() *Rejection {
	switch {
	case e.emptySurface || e.Surface != "" || e.ThreadID != "" || e.DirectID != "":
		return invalidSurface("kind " + string(e.Kind) + " has no surface, thread_id or direct_id")
	case e.WorkID != "":
		return malformed(StepShape, "kind "+string(e.Kind)+" has no work_id")
	case e.Kind == KindGreet && e.To != "":
		return malformed(StepShape, "kind greet has no to")
	}
	return nil
}

func (e *Envelope) checkSurface() *Rejection {
	switch {
	case e.emptySurface:
		return invalidSurface("surface, thread_id and direct_id are not empty where they are given")
	case e.Surface == "":
		return invalidSurface("surface is required for kind " + string(e.Kind))
	case e.Surface != SurfaceThread && e.Surface != SurfaceDirect:
		return invalidSurface("surface is neither thread nor direct")
	case e.Surface == SurfaceThread && e.DirectID != "":
		return invalidSurface("a direct_id stands beside surface thread")
	case e.Surface == SurfaceThread && !ValidThreadID(e.ThreadID):
		return invalidSurface("thread_id is missing or is not " + ThreadGrammar)
	case e.Surface == SurfaceDirect && e.ThreadID != "":
		return invalidSurface("a thread_id stands beside surface direct")
	case e.Surface == SurfaceDirect && !ValidDirectID(e.DirectID):
		return invalidSurface("direct_id is missing or is not " + DirectGrammar)
	}
	return nil
}

func invalidSurface(detail string) *Rejection {
	return &Rejection{Step: StepShape, Reason: ReasonInvalidSurface, Detail: detail}
}
