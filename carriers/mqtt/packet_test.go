package mqtt

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/mochi-mqtt/server/v2/packets"
)

// peer is one side of a raw MQTT connection.
type peer struct {
	net.Conn
	reader  *bufio.Reader
	version byte
	mu      sync.Mutex
}

func newPeer(conn net.Conn) *peer {
	return &peer{Conn: conn, reader: bufio.NewReader(conn), version: 4}
}

// read reads one packet.
func (p *peer) read() (packets.Packet, error) {
	first, err := p.reader.ReadByte()
	if err != nil {
		return packets.Packet{}, err
	}
	pk := packets.Packet{ProtocolVersion: p.version}
	if err := pk.FixedHeader.Decode(first); err != nil {
		return pk, err
	}
	if pk.FixedHeader.Remaining, _, err = packets.DecodeLength(p.reader); err != nil {
		return pk, err
	}
	body := make([]byte, pk.FixedHeader.Remaining)
	if _, err := io.ReadFull(p.reader, body); err != nil {
		return pk, err
	}
	decode := map[byte]func([]byte) error{
		packets.Connect: pk.ConnectDecode, packets.Connack: pk.ConnackDecode,
		packets.Publish: pk.PublishDecode, packets.Puback: pk.PubackDecode,
		packets.Pubrec: pk.PubrecDecode, packets.Pubrel: pk.PubrelDecode, packets.Pubcomp: pk.PubcompDecode,
		packets.Subscribe: pk.SubscribeDecode, packets.Suback: pk.SubackDecode,
		packets.Pingreq: pk.PingreqDecode, packets.Pingresp: pk.PingrespDecode,
		packets.Disconnect: pk.DisconnectDecode,
	}[pk.FixedHeader.Type]
	if decode == nil {
		return pk, fmt.Errorf("packet type %d is not expected", pk.FixedHeader.Type)
	}
	return pk, decode(body)
}

// write writes one packet.
func (p *peer) write(pk packets.Packet) error {
	pk.ProtocolVersion = p.version
	if pk.FixedHeader.Type == packets.Pubrel || pk.FixedHeader.Type == packets.Subscribe {
		pk.FixedHeader.Qos = 1 // the reserved bits of their headers
	}
	encode := map[byte]func(*bytes.Buffer) error{
		packets.Connect: pk.ConnectEncode, packets.Connack: pk.ConnackEncode,
		packets.Publish: pk.PublishEncode, packets.Puback: pk.PubackEncode,
		packets.Pubrec: pk.PubrecEncode, packets.Pubrel: pk.PubrelEncode, packets.Pubcomp: pk.PubcompEncode,
		packets.Subscribe: pk.SubscribeEncode, packets.Suback: pk.SubackEncode,
		packets.Pingreq: pk.PingreqEncode, packets.Pingresp: pk.PingrespEncode,
		packets.Disconnect: pk.DisconnectEncode,
	}[pk.FixedHeader.Type]
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.Write(b.Bytes())
	return err
}

func header(kind byte) packets.FixedHeader { return packets.FixedHeader{Type: kind} }
