package gateway

// group is what shares one commit, in order of arrival: outcomes of deliveries,
// and a run of offers or a run of controls. The two never mix, because a control
// changes the directory that offers are decided by.
type group struct {
	offers   []*offer
	controls []*control
	results  []recorded
}

func (g group) empty() bool {
	return len(g.offers) == 0 && len(g.controls) == 0 && len(g.results) == 0
}

// gather takes what waits now, within the bounds of a group.
func (c *committer) gather(first item) group {
	var g group
	bytes := 0
	for it, ok := c.next(first); ok; it, ok = c.next(item{}) {
		if (it.control != nil && len(g.offers) > 0) || (it.offer != nil && len(g.controls) > 0) {
			c.held = it
			break
		}
		if it.control != nil {
			g.controls = append(g.controls, it.control)
		} else {
			g.offers = append(g.offers, it.offer)
			bytes += len(it.offer.in.Payload)
		}
		if len(g.offers)+len(g.controls) >= groupRows || bytes >= groupBytes {
			break
		}
	}
	g.results = c.takeResults()
	return g
}

// next is what the last group left over, the given item, or what waits; it does
// not block.
func (c *committer) next(first item) (item, bool) {
	if c.held != (item{}) {
		it := c.held
		c.held = first
		return it, true
	}
	if first != (item{}) {
		return first, true
	}
	select {
	case it := <-c.queue:
		return it, true
	default:
		return item{}, false
	}
}
