// Package stdio is the carrier whose peers are programs that the gateway runs
// on its own host: one JSON object a line on their standard input and output.
//
// Each configured agent with participation.mode live is attached as one peer of
// one channel, and is one process (launch: start) or one for each wake (launch:
// wake). An agent with mode local (the default) is not
// started and has no peer at all.
//
//	supervise.go   start, wait, back off, start again; orderly stop
//	program.go     whether the program of an agent is there
//	process.go     one process: pipes, environment, process group
//	guard.go       the small process that outlives a killed gateway just long
//	               enough to take the agent's process group with it
//	receive.go     lines from the agent: envelopes, control lines, noise
//	frame.go       splitting into lines, writing control lines
//	said.go        reading the control lines of an agent
//	settle.go      what became of an envelope, told to its agent
//	send.go        deliveries to an agent
//	wake.go        turns: of the running process, or of one for each wake
//	turn.go        what is still to come before a turn is over
//	input.go       the one writer of an agent's standard input
//
// # Frames
//
// A frame is the bytes up to a line feed. A line that begins with { is an
// envelope, or {"carrier":{...}}, which is about the carrier and never an
// envelope. Any other line is noise: counted, logged, never fatal. A line over
// max_line is skipped to its end in constant memory and refused; the lines
// before and after it are untouched. What an agent writes to its standard error
// is its log.
//
// # Acknowledgements
//
// An agent is told {"carrier":{"ack":...}} after the commit, in the order of its
// lines. Acknowledgements that it does not read are kept up to a bound and then
// dropped and counted: the commit stands, and who sends again is told that it is
// a duplicate. So an agent that only talks and never listens does no harm.
//
// A delivery counts as acknowledged when its line is written (ack: write), which
// proves no more than that it is in the pipe, or when the agent itself says so
// (ack: explicit). A line is never cut: when an agent stops reading in the middle
// of one, the delivery ends with an unknown outcome after write_timeout, and the
// rest of that line is still the next thing that is written to this process.
// What an agent had not taken when it died goes to the next process, as the same
// bytes.
package stdio
