package mcpserver

import (
	"context"
	"fmt"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
)

// takeSeat attaches the peer when the server starts. A gateway that does not
// answer is asked again before the first call that needs it.
func (s *Server) takeSeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, seatTimeout)
	defer cancel()
	err := s.attach(ctx)
	if err != nil && client.Passing(err) {
		s.Logger.Warn("the gateway does not answer yet; the peer will be attached with the first call", "error", err)
		return nil
	}
	return err
}

// attach makes sure that the peer is attached. Calls that come together may
// attach it more than once, which changes nothing.
func (s *Server) attach(ctx context.Context) error {
	if s.attached.Load() {
		return nil
	}
	if err := s.Client.Attach(ctx, s.Seat); err != nil {
		return fmt.Errorf("attach %s: %w", s.Seat.Peer, err)
	}
	if !s.attached.Swap(true) {
		s.Logger.Info("attached", "workspace", s.Seat.Workspace, "channel", s.Seat.Channel, "peer", s.Seat.Peer)
	}
	return nil
}

func (s *Server) leaveSeat(ctx context.Context) error {
	if !s.Detach {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, seatTimeout)
	defer cancel()
	if err := s.Client.Detach(ctx, s.Seat); err != nil {
		return fmt.Errorf("detach %s: %w", s.Seat.Peer, err)
	}
	return nil
}
