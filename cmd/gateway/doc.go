// Command gateway carries compozy-network/v0 envelopes between carriers.
//
// This package holds the commands and the wiring: the one table from carrier
// type to constructor (wire.go), the layers of the configuration (load.go) and
// one file for each command. Everything that the gateway does stands in the
// packages that it wires together; the commands that look at a running gateway
// use its HTTP interface like anybody else.
package main
