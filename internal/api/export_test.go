package api

// Statuses exports the statuses of all codes to the tests.
var Statuses = statuses
