/** Reward surfaces that are being measured grow on the page, point by point. */
import { exchange } from "../frame/exchange.js";
import { startPolling } from "../frame/polling.js";

const place = () => document.querySelector("[data-surfaces]");

startPolling({
  address: () => place().dataset.surfaces,
  wanted: () => place()?.querySelector("[data-waiting]"),
  everyMs: () => 1500,
  take: (markup) => exchange(place(), markup),
});
