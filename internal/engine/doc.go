// Package engine processes epochs: it reads batches in an order that it records,
// decodes them, sends records to the shards that own their keys, folds them into
// tables, and encodes what each epoch has changed and put out. It knows neither
// stores nor logs; internal/runner carries out what comes of it.
package engine
