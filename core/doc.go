// Package core is the protocol compozy-network/v0, as docs/protocol.md tells
// it, and the port between the gateway and its carriers. It does no I/O, has no
// clock of its own and knows nothing of the other packages.
//
// The model:
//
//   - An [Envelope] is one JSON object. [Parse] turns bytes into one, in a
//     single strict pass, so that the bytes mean the same to the gateway and to
//     whoever gets them; the bytes themselves (Raw) are what is stored and
//     forwarded, never a new encoding.
//   - Steps of validation come in a fixed order, and the first that fails names
//     the one [Reason]: Parse is steps 1 and 2, [Envelope.CheckFresh] 3,
//     [Envelope.CheckShape] and [Envelope.CheckAddress] 4,
//     [Envelope.CheckBody] 5. The later steps need state and live elsewhere.
//   - Freshness ends, identity does not: [Envelope.KnownUntil] says how long an
//     id must be remembered so that nothing is accepted twice, and Content tells
//     a retry from another message under the same id.
//   - A [Container] is the thread or the direct room that a message belongs to.
//   - [Work] is a unit of work, bound to the container of its opener; its state
//     machine, [Work.Apply], is a pure function.
//   - A receipt is a message. [BuildReceipt] builds the only one that a gateway
//     sends of its own: that it refused something.
//   - An [Address] is what a carrier's own address says of a message. It grants
//     nothing and must agree with the envelope.
//
// The port, for those who write a carrier:
//
//   - A [Carrier] receives frames and offers them to an [Intake]; it sends what
//     it is given as [Outbound]. It keeps nothing and decides nothing.
//   - A [Settlement] says what became of an offered frame, after the commit. An
//     [Ack] says what a carrier's own peer acknowledged of a send. Neither is
//     ever turned into the other, nor into a receipt.
package core
