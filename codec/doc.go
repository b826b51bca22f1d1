// Package codec turns bytes into values and values into bytes. A [Codec] says
// which type it makes, so that a source built with one is typed from there on:
//
//	file.Lines("access.log", codec.String())
//	file.Lines("orders.jsonl", codec.JSON[Order](codec.Strict()))
//
// Decoded values never point into the bytes that they were decoded from. What
// can't be decoded is a *[connector.DecodeError] with the field's path and the
// place in the bytes, where they are known.
package codec
